"""A journal: entries in the order in which they were given, on disk when `commit` returns.

Everything is asked for on one event loop; a worker's thread writes. While it writes, what comes next gathers, and is
written together: acknowledgements wait for the disk together (group commit).
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from podtrail.otlp.stored import Entry
from podtrail.storage.disk import Disk
from podtrail.storage.errors import StorageError
from podtrail.storage.instruments import StorageInstruments
from podtrail.storage.recovery import open_folder, read_entry, read_segment
from podtrail.storage.segment import frame_size, head_frame, write_frame
from podtrail.storage.segment_writer import PlacedFrame, Position, SegmentWriter, SyncFailed
from podtrail.storage.states import save_state, saved_states
from podtrail.storage.worker import ThreadWorker, Worker

_LARGEST_SEGMENT = 16 << 20
"""Bytes from which on a segment is ended."""
_SOON = 0.01
"""Seconds until what was added is written by itself."""
_AGAIN = 1.0
"""Seconds until a disk that takes nothing is tried again."""
_PROBE = 64 << 10
"""Bytes that there must be room for again."""


class _Commit(NamedTuple):
    frames: Sequence[tuple[Sequence[bytes], int]]
    size: int
    done: asyncio.Future[Sequence[Position]]


class _Group(NamedTuple):
    """What is written together: first what has been promised a place, then commits, which may be refused."""

    kept: Sequence[PlacedFrame]
    commits: Sequence[tuple[_Commit, Sequence[PlacedFrame]]]
    tail: Position
    """Where the commits begin."""


class Journal:
    """One folder of segments and states. Opened by `open_journal`."""

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        *,
        fsync: bool = False,
        mode: int = 0o700,
        worker: Callable[[str], Worker] = ThreadWorker,
        instruments: StorageInstruments | None = None,
    ) -> None:
        """Describe it; `mode`: of the folder, where it is made."""
        self.folder = folder
        self.failing: str | None = None
        """Why the disk takes nothing now; None while it does."""
        self.since_cut = 0
        """Bytes written since the last cut."""
        self._disk = disk
        self._mode = mode
        self._instruments = instruments or StorageInstruments(folder.name)
        self._make_worker = worker
        self._workers: dict[str, Worker] = {}
        self._writer = SegmentWriter(folder, disk, fsync=fsync)
        self._sizes: dict[int, int] = {}
        self._tail = Position(1, 0)
        self._cut_at = 0
        self._kept: list[PlacedFrame] = []
        self._unwritten: dict[Position, Entry] = {}
        self._waiting: list[_Commit] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._closed = True

    async def open(self) -> None:
        """Read the folder and mend what is damaged in it.

        Raises:
            StorageError: the folder can't be made or read.
        """
        try:
            opened = await self._worker("writer").do(partial(open_folder, self.folder, self._disk, self._mode))
        except OSError as error:
            self._end_workers()
            raise StorageError(f"can't use {self.folder}: {error.strerror}") from error
        self._sizes = opened.sizes
        self._tail = Position(opened.next, 0)
        for damage in opened.damages:
            self._instruments.damage(damage)
        self._instruments.watch(lambda: self.size, lambda: self.failing is not None)
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it takes nothing any more."""
        return self._closed

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._sizes.values())

    def entries(self) -> Iterator[tuple[Position, Entry]]:
        """Yield all that is on the disk and can be read, in order. Blocks: to be called off the loop, or in slices."""
        for number in sorted(self._sizes):
            yield from read_segment(self.folder, self._disk, number)

    async def commit(self, entries: Sequence[Entry]) -> Sequence[Position]:
        """Write entries, all or none; return their positions when they are on the disk.

        Raises:
            StorageError: the disk is full, broken or closed; none was taken.
        """
        if self._closed:
            raise StorageError("the store is closed")
        frames = [(write_frame(entry), frame_size(entry)) for entry in entries]
        done: asyncio.Future[Sequence[Position]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Commit(frames, sum(size for _, size in frames), done))
        self._write_now()
        return await done

    def add(self, entry: Entry) -> Position:
        """Take an entry without waiting: it is written with the next commit, or soon; kept in memory until then."""
        position = self._place(frame_size(entry))
        self._kept.append(PlacedFrame(position, write_frame(entry), frame_size(entry)))
        self._unwritten[position] = entry
        if self._task is None and self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(_AGAIN if self.failing else _SOON, self._write_now)
        return position

    async def flush(self) -> None:
        """Return when all that was added is on the disk.

        Raises:
            StorageError: it can't be.
        """
        await self.commit(())

    async def read(self, position: Position) -> Entry:
        """Return the entry at a position.

        Raises:
            StorageError: it can't be read, or there is none.
        """
        if position in self._unwritten:
            return self._unwritten[position]
        try:
            entry = await self._worker("reader").do(partial(read_entry, self.folder, self._disk, position))
        except OSError as error:
            raise StorageError(f"can't read {self.folder}: {error.strerror}") from error
        if entry is None:
            raise StorageError(f"nothing can be read in {self.folder} at {position.segment}:{position.offset}")
        return entry

    def cut(self) -> int:
        """Begin a new segment with the next entry; return its number."""
        if self._tail.offset:
            self._tail = Position(self._tail.segment + 1, 0)
        self._cut_at, self.since_cut = self._tail.segment, 0
        return self._tail.segment

    def forget(self, before: int) -> None:
        """Remove the segments with lower numbers, soon."""
        gone = [number for number in sorted(self._sizes) if number < before]
        self._kept = [frame for frame in self._kept if frame.position.segment >= before]
        self._unwritten = {at: entry for at, entry in self._unwritten.items() if at.segment >= before}
        if gone and not self._closed:
            task = asyncio.get_running_loop().create_task(self._forget(before, gone))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def save(self, segment: int, pieces: Iterable[bytes | memoryview]) -> None:
        """Write the client's state as of the beginning of a segment, then remove older ones. Commits don't wait for it.

        Raises:
            StorageError: it can't be written; the older ones are still there.
        """
        try:
            await self._worker("saver").do(partial(save_state, self.folder, self._disk, segment, pieces))
        except OSError as error:
            self._instruments.failed("save")
            raise StorageError(f"can't write to {self.folder}: {error.strerror}") from error

    def saved(self) -> Iterator[tuple[int, bytes]]:
        """Yield segment and state of the states that are whole, the newest first. Blocks."""
        return saved_states(self.folder, self._disk)

    async def close(self) -> None:
        """Write what was added, as far as that is possible, and close."""
        if self._closed:
            return
        try:
            await self.flush()
        except StorageError as error:
            lost = len(self._kept)
            self._instruments.log.error("closing %s: %d entries can't be written: %s", self.folder, lost, error.reason)
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for running in (self._task, *self._background):
            if running is not None:
                await running
        await self._worker("writer").do(self._writer.close)
        self._end_workers()

    def _worker(self, name: str) -> Worker:
        if name not in self._workers:
            self._workers[name] = self._make_worker(f"{self.folder.name}-{name}")
        return self._workers[name]

    def _end_workers(self) -> None:
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()

    def _place(self, size: int) -> Position:
        """Return the place of the next frame, and move the tail behind it."""
        segment, offset = self._tail
        if offset and offset + size > _LARGEST_SEGMENT:
            segment, offset = segment + 1, 0
        offset = offset or len(head_frame())
        self._tail = Position(segment, offset + size)
        return Position(segment, offset)

    def _write_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_all(self) -> None:
        """Write until nothing is left or the disk takes nothing."""
        try:
            while self._waiting or self._kept or self.failing:
                group = self._take()
                try:
                    await self._worker("writer").do(partial(self._write, group))
                except OSError as error:
                    self._failed(group, error)
                    if not self._waiting:
                        break
                else:
                    self._written(group)
        finally:
            self._task = None
        if self.failing and not self._closed and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_AGAIN, self._write_now)

    def _take(self) -> _Group:
        kept, self._kept = self._kept, []
        tail, size, commits = self._tail, 0, []
        while self._waiting and (not size or size + self._waiting[0].size <= _LARGEST_SEGMENT):
            commit = self._waiting.pop(0)
            commits.append(commit)
            size += commit.size
        if tail.offset and tail.offset + size > _LARGEST_SEGMENT:
            self._tail = Position(tail.segment + 1, 0)
        placed = [(commit, [self._placed(*frame) for frame in commit.frames]) for commit in commits]
        return _Group(kept, placed, tail)

    def _placed(self, pieces: Sequence[bytes], size: int) -> PlacedFrame:
        segment, offset = self._tail
        offset = offset or len(head_frame())
        self._tail = Position(segment, offset + size)
        return PlacedFrame(Position(segment, offset), pieces, size)

    def _write(self, group: _Group) -> None:
        """Write a group, in the worker's thread."""
        frames = [*group.kept, *(frame for _, frames in group.commits for frame in frames)]
        if frames:
            self._writer.write(frames)
        else:
            self._writer.probe(group.tail.segment, _PROBE)

    def _written(self, group: _Group) -> None:
        if self.failing:
            self._instruments.log.warning("%s takes what is written again", self.folder)
            self.failing = None
        size = 0
        for frame in (*group.kept, *(frame for _, frames in group.commits for frame in frames)):
            self._unwritten.pop(frame.position, None)
            self._sizes[frame.position.segment] = frame.position.offset + frame.size
            size += frame.size
            if frame.position.segment >= self._cut_at:
                self.since_cut += frame.size
        self._instruments.wrote(size)
        for commit, frames in group.commits:
            if not commit.done.done():
                commit.done.set_result([frame.position for frame in frames])

    def _failed(self, group: _Group, error: OSError) -> None:
        reason = f"can't write to {self.folder}: {error.strerror}"
        self._instruments.failed("sync" if isinstance(error, SyncFailed) else "write")
        if not self.failing:
            self._instruments.log.error("%s; nothing is acknowledged until it can", reason)
        self.failing = reason
        if not self._kept:
            self._tail = group.tail  # nothing has been promised a place behind the commits that are refused
        self._kept[:0] = group.kept
        if isinstance(error, SyncFailed):
            self._tail = Position(self._tail.segment + 1, 0)
        for commit, _ in group.commits:
            if not commit.done.done():
                commit.done.set_exception(StorageError(reason))

    async def _forget(self, before: int, numbers: Sequence[int]) -> None:
        try:
            await self._worker("writer").do(partial(self._writer.forget, before, numbers))
        except OSError as error:
            self._instruments.failed("forget")
            self._instruments.log.error("can't remove segments of %s: %s", self.folder, error.strerror)
            return
        for number in numbers:
            self._sizes.pop(number, None)
