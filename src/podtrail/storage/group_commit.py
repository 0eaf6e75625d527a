"""Group commit: what comes while the disk is busy gathers, and is then written together.

What was added has been promised a place and is written first, however often that takes; commits are given theirs when
their turn comes, since a disk that takes nothing refuses them.
"""

import asyncio
import errno
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from podtrail.otlp.stored import Entry
from podtrail.storage.errors import StorageError
from podtrail.storage.instruments import StorageInstruments
from podtrail.storage.segment import HEAD_SIZE, Position, frame_size
from podtrail.storage.segment_writer import PlacedEntry, SegmentWriter, SyncFailed
from podtrail.storage.worker import Worker

_SOON = 0.01
"""Seconds until what was added is written by itself."""
_AGAIN = 1.0
"""Seconds until a disk that takes nothing is tried again."""
_PROBE = 64 << 10
"""Bytes that there must be room for again."""


class _Commit(NamedTuple):
    entries: Sequence[tuple[Entry, int]]
    size: int
    done: asyncio.Future[Sequence[Position]]


class _Group(NamedTuple):
    """What is written together."""

    added: Sequence[PlacedEntry]
    commits: Sequence[tuple[_Commit, Sequence[PlacedEntry]]]
    tail: Position
    """Where the commits begin."""

    def entries(self) -> list[PlacedEntry]:
        return [*self.added, *(placed for _, entries in self.commits for placed in entries)]


class GroupCommit:
    """Gives entries their places and has them written."""

    def __init__(
        self,
        writer: SegmentWriter,
        worker: Callable[[], Worker],
        largest_segment: int,
        instruments: StorageInstruments,
        written: Callable[[Sequence[PlacedEntry]], None],
    ) -> None:
        """Make it; `written` is told what is on the disk, `largest_segment` are the bytes that end a segment."""
        self.failing: str | None = None
        """Why the disk takes nothing; None while it does."""
        self.tail = Position(1, 0)
        """Behind the last entry that has a place."""
        self._writer = writer
        self._worker = worker
        self._largest_segment = largest_segment
        self._instruments = instruments
        self._tell_written = written
        self._added: list[PlacedEntry] = []
        self._unwritten: dict[Position, Entry] = {}
        self._waiting: list[_Commit] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._forgotten = 0
        self._ended = False

    async def commit(self, entries: Sequence[Entry]) -> Sequence[Position]:
        """Return the entries' positions when they are on the disk.

        Raises:
            StorageError: it took none of them.
            ValueError: one of them can't be stored.
        """
        sized = [(entry, frame_size(entry)) for entry in entries]
        done: asyncio.Future[Sequence[Position]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Commit(sized, sum(size for _, size in sized), done))
        self._write_now()
        return await done

    def add(self, entry: Entry) -> Position:
        """Promise an entry a place.

        Raises:
            ValueError: it can't be stored.
        """
        size = frame_size(entry)
        self._begin_segment_for(size)
        placed = self._place(entry, size)
        self._added.append(placed)
        self._unwritten[placed.position] = entry
        self._write_in(_AGAIN if self.failing else _SOON)
        return placed.position

    def unwritten(self, position: Position) -> Entry | None:
        """Return an entry that was promised this place, and is not written yet."""
        return self._unwritten.get(position)

    def begin_segment(self, number: int) -> None:
        """Put what comes next into this segment or a later one."""
        if self.tail.segment < number:
            self.tail = Position(number, 0)

    def forget(self, before: int) -> None:
        """Don't write what was added to segments with lower numbers."""
        self._forgotten = max(self._forgotten, before)
        self._added = [placed for placed in self._added if placed.position.segment >= before]
        self._unwritten = {at: entry for at, entry in self._unwritten.items() if at.segment >= before}
        self.begin_segment(before)

    def end(self) -> int:
        """Begin nothing more; return the number of entries that have a place and were never written."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        return len(self._unwritten)

    def _begin_segment_for(self, size: int) -> None:
        if self.tail.offset and self.tail.offset + size > self._largest_segment:
            self.tail = Position(self.tail.segment + 1, 0)

    def _place(self, entry: Entry, size: int) -> PlacedEntry:
        position = Position(self.tail.segment, self.tail.offset or HEAD_SIZE)
        self.tail = Position(position.segment, position.offset + size)
        return PlacedEntry(position, entry, size)

    def _write_in(self, delay: float) -> None:
        if self._task is None and self._timer is None and not self._ended:
            self._timer = asyncio.get_running_loop().call_later(delay, self._write_now)

    def _write_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_all(self) -> None:
        """Write until nothing is left or the disk takes nothing."""
        try:
            while self._waiting or self._added or self.failing:
                group = self._take()
                try:
                    await self._worker().do(partial(self._write, group))
                except OSError as error:
                    self._failed(group, error)
                    if not self._waiting:
                        break
                else:
                    self._written(group)
        finally:
            self._task = None
        if self.failing:
            self._write_in(_AGAIN)

    def _take(self) -> _Group:
        """Take what was added, and commits up to the size of a segment; they have their places together."""
        added, self._added = self._added, []
        before, size, commits = self.tail, 0, []
        while self._waiting and (not size or size + self._waiting[0].size <= self._largest_segment):
            commits.append(self._waiting.pop(0))
            size += commits[-1].size
        self._begin_segment_for(size)
        placed = [(commit, [self._place(*sized) for sized in commit.entries]) for commit in commits]
        return _Group(added, placed, before)

    def _write(self, group: _Group) -> None:
        """Write a group, in the worker's thread."""
        if entries := group.entries():
            self._writer.write(entries)
        elif self.failing:
            self._writer.probe(group.tail.segment, _PROBE)

    def _written(self, group: _Group) -> None:
        if self.failing:
            self._instruments.recovered()
            self.failing = None
        entries = group.entries()
        for placed in group.added:
            self._unwritten.pop(placed.position, None)
        self._tell_written(entries)
        for commit, places in group.commits:
            if not commit.done.done():
                commit.done.set_result([placed.position for placed in places])

    def _failed(self, group: _Group, error: OSError) -> None:
        sync = isinstance(error, SyncFailed)
        self.failing = self._instruments.failing_at("sync" if sync else "write", error, first=self.failing is None)
        if not self._added:  # else something was promised a place behind the commits that are refused now
            same = self.tail.segment == group.tail.segment
            self.tail = group.tail if same else Position(self.tail.segment, 0)
        if (sync or error.errno == errno.EFBIG) and self.tail.offset:
            self.tail = Position(self.tail.segment + 1, 0)
        self._added[:0] = [placed for placed in group.added if placed.position.segment >= self._forgotten]
        for commit, _ in group.commits:
            if not commit.done.done():
                commit.done.set_exception(StorageError(self.failing))
