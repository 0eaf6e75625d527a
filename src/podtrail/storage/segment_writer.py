"""Writes entries to where they have been promised a place, in the writer's thread."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from podtrail.otlp.stored import Entry
from podtrail.storage.disk import Disk
from podtrail.storage.layout import segment_path
from podtrail.storage.segment import Position, head_frame, new_mark, padding_frames, write_frame


class PlacedEntry(NamedTuple):
    """An entry, its place, and the size of its frame."""

    position: Position
    entry: Entry
    size: int


class SyncFailed(OSError):
    """What was written could not be forced onto the disk: nothing more may be put behind it."""


class SegmentWriter:
    """Appends to one segment at a time. Whatever fails leaves it as it was, or is mended before anything is written.

    After a failed fsync nobody knows what of the pages is on the disk, and to ask again would say that all is well
    (https://wiki.postgresql.org/wiki/Fsync_Errors). So they are thrown away and written anew: in a new file, where the
    segment holds nothing else yet; otherwise only what has been promised a place in it, and then no more.
    """

    def __init__(self, folder: Path, disk: Disk, *, fsync: bool) -> None:
        self._folder = folder
        self._disk = disk
        self._fsync = fsync
        self._handle: int | None = None
        self._segment = 0
        self._mark = b""
        self._end = 0
        self._done = Position(0, 0)
        """Behind the last entry that is on the disk."""
        self._spoilt = False

    def write(self, entries: Sequence[PlacedEntry]) -> None:
        """Write entries, those of lower positions first; what stands on the disk already is passed over.

        Raises:
            OSError: not all of them are on the disk.
        """
        for segment, some in groupby(entries, lambda placed: placed.position.segment):
            new = [placed for placed in some if placed.position >= self._done]
            if new:
                self._append(segment, new)

    def probe(self, segment: int, size: int) -> None:
        """Try whether `size` bytes could be written to a segment, and leave it as it was.

        Raises:
            OSError: they couldn't.
        """
        self._put(self._open(segment), [bytes(size)])
        self._spoilt = True
        self._mend()

    def forget(self, before: int, numbers: Sequence[int]) -> None:
        """Remove segments with numbers lower than `before`, the lowest first.

        Raises:
            OSError: one can't be removed; those behind it are still there.
        """
        if self._handle is not None and self._segment < before:
            self.close()
        for number in numbers:
            with suppress(FileNotFoundError):
                self._disk.unlink(segment_path(self._folder, number))
            if self._fsync:  # so that no power loss leaves a gap that looks like a segment that is missing
                self._disk.sync_folder(self._folder)

    def close(self) -> None:
        """Close the segment.

        Raises:
            OSError: what was refused can't be cut off it; or its end is not known to be on the disk.
        """
        handle = self._handle
        if handle is None:
            return
        try:
            self._mend()
        finally:
            self._handle = None
            self._disk.close(handle)

    def _append(self, segment: int, entries: Sequence[PlacedEntry]) -> None:
        handle = self._open(segment)
        pieces = [head_frame(self._mark)] if self._end == 0 else []
        end = self._end + sum(map(len, pieces))
        for placed in entries:
            if placed.position.offset > end:  # commits were refused there, but something was promised the place behind
                pieces += padding_frames(placed.position.offset - end, self._mark)
            pieces += write_frame(placed.entry, self._mark)
            end = placed.position.offset + placed.size
        self._put(handle, pieces)
        self._end, self._done = end, Position(segment, end)

    def _put(self, handle: int, pieces: Sequence[bytes]) -> None:
        """Write at the end, and force it onto the disk if it is to be."""
        self._mend()
        self._spoilt = True
        try:
            self._disk.write(handle, self._end, pieces)
            if self._fsync:
                self._sync(handle)
        except OSError as error:
            with suppress(OSError):  # if this fails, it is done before anything else is written
                if isinstance(error, SyncFailed) and self._end == 0:
                    self._remove()
                else:
                    self._mend()
            raise
        self._spoilt = False

    def _open(self, segment: int) -> int:
        if self._handle is not None and self._segment == segment:
            return self._handle
        self.close()
        self._handle = self._disk.open(segment_path(self._folder, segment), create=True)
        if self._segment != segment:
            self._segment, self._mark, self._end, self._spoilt = segment, new_mark(), 0, True
        return self._handle

    def _sync(self, handle: int) -> None:
        try:
            self._disk.sync(handle)
            if self._end == 0:
                self._disk.sync_folder(self._folder)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror) from error

    def _remove(self) -> None:
        """Throw a segment's file away, so that the next try begins with one of which nothing is on the disk."""
        handle, self._handle = self._handle, None
        assert handle is not None
        self._spoilt = True
        try:
            self._disk.close(handle)
        finally:
            self._disk.unlink(segment_path(self._folder, self._segment))

    def _mend(self) -> None:
        if self._spoilt and self._handle is not None:
            self._disk.truncate(self._handle, self._end)
            self._spoilt = False
