"""A journal: entries in the order in which they were given, on disk when `commit` returns, and states beside them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from podtrail.otlp.stored import Entry
from podtrail.storage.disk import Disk, largest_file
from podtrail.storage.errors import StorageError, UnreadableEntry
from podtrail.storage.group_commit import GroupCommit
from podtrail.storage.instruments import StorageDamage, StorageInstruments
from podtrail.storage.layout import FIRST_SEGMENT, segment_path
from podtrail.storage.recovery import open_folder, read_entry, read_segment
from podtrail.storage.segment import Position
from podtrail.storage.segment_writer import PlacedEntry, SegmentWriter
from podtrail.storage.states import remove_states, save_state, saved_states
from podtrail.storage.worker import ThreadWorker, Worker

T = TypeVar("T")
LARGEST_SEGMENT = 16 << 20
"""Bytes from which on a new segment is begun."""


class Journal:
    """One folder of segments and states. Everything is asked for on one event loop; workers do what blocks."""

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        *,
        fsync: bool = False,
        mode: int = 0o700,
        worker: Callable[[str], Worker] = ThreadWorker,
        instruments: StorageInstruments | None = None,
        largest_segment: int | None = None,
    ) -> None:
        """Describe it; `mode` is that of folders that are made, `largest_segment` are bytes, None: 16 MiB.

        Where the process may write no file of that size, segments are as large as they may be.
        """
        self.folder = folder
        self.since_cut = 0
        """Bytes written since the last cut."""
        self._disk = disk
        self._mode = mode
        self._fsync = fsync
        self._instruments = instruments or StorageInstruments(folder)
        self._make_worker = worker
        self._workers: dict[str, Worker] = {}
        self._writer = SegmentWriter(folder, disk, fsync=fsync)
        self._group = GroupCommit(
            self._writer,
            lambda: self._worker("writer"),
            largest_segment or min(LARGEST_SEGMENT, largest_file()),
            self._instruments,
            self._written,
        )
        self._sizes: dict[int, int] = {}
        self._cut_at = 0
        self._background: set[asyncio.Task[None]] = set()
        self._closed = True

    async def open(self) -> None:
        """Read the folder and mend what is damaged in it.

        Raises:
            StorageError: the folder can't be made or read.
        """
        try:
            work = partial(open_folder, self.folder, self._disk, self._mode, fsync=self._fsync)
            opened = await self._worker("writer").do(work)
        except OSError as error:
            self._end_workers()
            raise StorageError(f"can't use {self.folder}: {error.strerror}") from error
        self._sizes = opened.sizes
        self._group.begin_segment(opened.next)
        for damage in opened.damages:
            self._instruments.damage(damage)
        self._instruments.watch(lambda: self.size, lambda: self.failing is not None)
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it takes nothing any more."""
        return self._closed

    @property
    def failing(self) -> str | None:
        """Why the disk takes nothing now; None while it does."""
        return self._group.failing

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._sizes.values())

    @property
    def is_whole(self) -> bool:
        """Whether the log begins where it began: nothing of it was forgotten."""
        return min(self._sizes, default=self._group.tail.segment) == FIRST_SEGMENT

    def size_before(self, number: int) -> int:
        """Return the bytes of the segments with lower numbers."""
        return sum(size for segment, size in self._sizes.items() if segment < number)

    def entries(self) -> Iterator[tuple[Position, Entry]]:
        """Yield all that is on the disk and can be read, in order. Blocks: to be called off the loop, or in slices.

        One segment is held in memory at a time. One that can't be read any more is told and passed over.
        """
        for number in sorted(self._sizes):
            try:
                yield from read_segment(self.folder, self._disk, number)
            except OSError as error:
                path = segment_path(self.folder, number)
                told = f"{path} can't be read ({error.strerror}); what it holds is not used"
                self._instruments.damage(StorageDamage(path.name, "unreadable", self._sizes.get(number, 0), told))

    def report_foreign(self, position: Position, entry: Entry, fault: str) -> None:
        """Count and log an entry that is whole but not of this journal's kind; `fault` continues "the entry …"."""
        path = segment_path(self.folder, position.segment)
        told = f"{path}: the entry at byte {position.offset} {fault}; it is not used"
        self._instruments.damage(StorageDamage(path.name, "foreign", len(entry.body), told))

    async def commit(self, entries: Sequence[Entry]) -> Sequence[Position]:
        """Write entries, all or none; return their positions when they are on the disk.

        Raises:
            StorageError: the disk is full, broken or closed; none was taken.
            ValueError: one of them can't be stored: its note or all of it is too long.
        """
        if self._closed:
            raise StorageError(f"{self.folder} is closed")
        return await self._group.commit(entries)

    def add(self, entry: Entry) -> Position:
        """Take an entry without waiting: it is written with the next commit, or soon; kept in memory until then.

        Raises:
            ValueError: it can't be stored: its note or all of it is too long.
        """
        return self._group.add(entry)

    async def flush(self) -> None:
        """Return when all that was added is on the disk.

        Raises:
            StorageError: it can't be.
        """
        await self.commit(())

    async def read(self, position: Position) -> Entry:
        """Return the entry at a position.

        Raises:
            UnreadableEntry: it is damaged, or gone.
            StorageError: it can't be read now.
        """
        if (entry := self._group.unwritten(position)) is not None:
            return entry
        try:
            found = await self._worker("reader").do(partial(read_entry, self.folder, self._disk, position))
        except FileNotFoundError:
            found = None
        except OSError as error:
            self._instruments.failed("read")
            raise StorageError(f"can't read {self.folder}: {error.strerror}") from error
        if found is None:
            raise UnreadableEntry(
                f"{self.folder}: nothing can be read in segment {position.segment} at {position.offset}"
            )
        return found

    def cut(self) -> int:
        """Begin a new segment with the next entry; return its number."""
        tail = self._group.tail
        self._cut_at = tail.segment + 1 if tail.offset else tail.segment
        self._group.begin_segment(self._cut_at)
        self.since_cut = 0
        return self._cut_at

    def forget(self, before: int) -> None:
        """Remove the segments with lower numbers, soon."""
        self._group.forget(before)
        gone = [number for number in sorted(self._sizes) if number < before]
        if gone and not self._closed:
            task = asyncio.get_running_loop().create_task(self._forget(before, gone))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def make_room(self, before: int) -> None:
        """Remove all states, and then the segments with lower numbers: where there is no room to save another state.

        Raises:
            StorageError: that can't be done.
        """
        await self._remove_states()
        self.forget(before)
        await asyncio.gather(*self._background)

    async def clear(self) -> None:
        """Remove everything, segments first: until they are gone the state says that nothing of them is needed.

        Raises:
            StorageError: that can't be done.
        """
        self.forget(self.cut())
        await asyncio.gather(*self._background)
        if self._sizes:
            raise StorageError(f"can't remove segments of {self.folder}")
        await self._remove_states()

    async def save(self, segment: int, pieces: Iterable[bytes | memoryview]) -> None:
        """Write the client's state as of the beginning of a segment, then remove older ones. Commits don't wait for it.

        It is forced onto the disk in any case, since what comes before it may be forgotten then.

        Raises:
            StorageError: it can't be written; the older ones are still there.
        """
        if self._closed:
            raise StorageError(f"{self.folder} is closed")
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
            self._instruments.failed("close")
            self._instruments.log.error("closing %s: %s", self.folder, error.reason)
        self._closed = True
        if left := self._group.end():
            self._instruments.log.error("%s: %d entries were never written", self.folder, left)
        for running in tuple(self._background):
            await running
        try:
            await self._worker("writer").do(self._writer.close)
        except OSError as error:
            self._instruments.failed("close")
            self._instruments.log.error("closing %s: %s", self.folder, error.strerror)
        self._end_workers()

    async def _remove_states(self) -> None:
        try:
            await self._worker("saver").do(partial(remove_states, self.folder, self._disk))
        except OSError as error:
            self._instruments.failed("forget")
            raise StorageError(f"can't remove from {self.folder}: {error.strerror}") from error

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; it is done in the thread that writes states."""
        return await self._worker("saver").do(work)

    def _worker(self, name: str) -> Worker:
        if name not in self._workers:
            self._workers[name] = self._make_worker(f"{self.folder.name}-{name}")
        return self._workers[name]

    def _end_workers(self) -> None:
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()

    def _written(self, entries: Sequence[PlacedEntry]) -> None:
        size = 0
        for position, _, frame in entries:
            self._sizes[position.segment] = position.offset + frame
            size += frame
            if position.segment >= self._cut_at:
                self.since_cut += frame
        self._instruments.wrote(size)

    async def _forget(self, before: int, numbers: Sequence[int]) -> None:
        try:
            await self._worker("writer").do(partial(self._writer.forget, before, numbers))
        except OSError as error:
            self._instruments.failed("forget")
            self._instruments.log.error("can't remove segments of %s: %s", self.folder, error.strerror)
            return
        for number in numbers:
            self._sizes.pop(number, None)
