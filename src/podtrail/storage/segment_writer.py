"""Writes frames to where they have been promised a place, in the writer's thread."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from podtrail.storage.disk import Disk
from podtrail.storage.layout import segment_path
from podtrail.storage.segment import head_frame, padding_frames


class Position(NamedTuple):
    """Where an entry stands in a journal; later entries have higher ones."""

    segment: int
    offset: int


class PlacedFrame(NamedTuple):
    """A frame and its place."""

    position: Position
    pieces: Sequence[bytes]
    size: int


class SyncFailed(OSError):
    """What was written could not be forced onto the disk: nothing more may be put behind it."""


class SegmentWriter:
    """Appends to one segment at a time. Whatever fails leaves the segment as it was, or is mended before the next."""

    def __init__(self, folder: Path, disk: Disk, *, fsync: bool) -> None:
        self._folder = folder
        self._disk = disk
        self._fsync = fsync
        self._handle: int | None = None
        self._segment = 0
        self._end = 0
        self._spoilt = False

    def write(self, frames: Sequence[PlacedFrame]) -> None:
        """Write frames, those of lower positions first; what stands on the disk already is passed over.

        Raises:
            OSError: not all of them are on the disk.
        """
        for segment, some in groupby(frames, lambda frame: frame.position.segment):
            new = [frame for frame in some if frame.position >= (self._segment, self._end)]
            if new:
                self._append(segment, new)

    def probe(self, segment: int, size: int) -> None:
        """Try whether `size` bytes could be written to a segment, and leave it as it was.

        Raises:
            OSError: they couldn't.
        """
        handle = self._open(segment)
        self._mend()
        self._spoilt = True
        try:
            self._disk.write(handle, self._end, [bytes(size)])
            if self._fsync:
                self._sync(handle)
        finally:
            self._cut_back()

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
            if self._fsync:
                self._disk.sync_folder(self._folder)

    def close(self) -> None:
        """Close the segment."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._disk.close(handle)

    def _append(self, segment: int, frames: Sequence[PlacedFrame]) -> None:
        handle = self._open(segment)
        self._mend()
        data = [head_frame()] if self._end == 0 else []
        end = self._end + sum(map(len, data))
        if frames[0].position.offset > end:
            data += padding_frames(frames[0].position.offset - end)
        for frame in frames:
            data += frame.pieces
        self._spoilt = True
        try:
            self._disk.write(handle, self._end, data)
            if self._fsync:
                self._sync(handle)
        except OSError:
            self._cut_back()
            raise
        self._spoilt = False
        self._end = frames[-1].position.offset + frames[-1].size

    def _open(self, segment: int) -> int:
        if self._handle is not None and self._segment == segment:
            return self._handle
        self.close()
        handle = self._disk.open(segment_path(self._folder, segment), create=True)
        self._handle, self._segment, self._end, self._spoilt = handle, segment, 0, True
        return handle

    def _sync(self, handle: int) -> None:
        try:
            self._disk.sync(handle)
            if self._end == 0:
                self._disk.sync_folder(self._folder)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror) from error

    def _cut_back(self) -> None:
        with suppress(OSError):  # it is tried again before anything else is written
            self._mend()

    def _mend(self) -> None:
        if self._spoilt and self._handle is not None:
            self._disk.truncate(self._handle, self._end)
            self._spoilt = False
