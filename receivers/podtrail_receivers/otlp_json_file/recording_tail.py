"""One recording that is followed: plain or compressed, appended to or written anew."""

import logging
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from podtrail.recording import (
    Damage,
    Gap,
    Record,
    RecordingDecoder,
    RecordingProgress,
    growing_pieces,
    is_compressed,
    pieces,
)
from podtrail_receivers.files.offsets import ReadFile
from podtrail_receivers.files.tail import MARK, ReadMark, Tail

_REQUESTS = 64
"""Requests of a compressed recording that are read at a time."""
_HEAD = 4
"""Bytes that tell whether a file is compressed."""
_Log = logging.LoggerAdapter[logging.Logger]


class Original(NamedTuple):
    """What was read of a plain file, a compressed copy of which may appear."""

    mark: ReadMark
    progress: RecordingProgress


class RecordingTail:
    """Reads what is new in a recording, also if it is compressed and grows."""

    def __init__(
        self, tail: Tail, log: _Log, known: ReadFile | None = None, originals: Sequence[Original] = ()
    ) -> None:
        """Begin where the tail stands, or where what is `known` of the file ends.

        A compressed copy of one of the `originals` is read behind what was read there.
        """
        self.tail = tail
        self._log = log
        self._path = str(tail.path)
        self._originals = originals if known is None else ()
        self._growing = True
        at = tail.file.tell() if known is None else known.progress.offset
        self._begin(at, known.progress if known else RecordingProgress(at), known.items if known else 0)
        self._noted = (self._progress, self._items)

    def _begin(self, at: int, progress: RecordingProgress, items: int) -> None:
        """Begin at a position of the file, which is none of the content if it is compressed."""
        self._at, self._progress, self._items = at, progress, items
        self._compressed: bool | None = None
        self._size = -1
        self._archive: Iterator[bytes | Gap] = iter(())
        self._fresh: Iterator[Record | Damage] | None = None
        self._skipped_bytes = self._skipped_items = 0
        self._decoder = RecordingDecoder(self._path, progress)

    @property
    def original(self) -> Original | None:
        """What was read, None of a compressed file, or if it is too little to know it again."""
        long_enough = self._compressed is False and self.tail.mark.position >= MARK
        return Original(self.tail.mark, self._progress) if long_enough else None

    def read(self) -> Iterator[Record | Damage]:
        """Yield what is new, about 256 KiB or 64 requests of it; nothing when nothing is."""
        if self.tail.begins_again():
            self._log.info("%s was truncated or rewritten; reading it from its beginning", self._path)
            yield from self._decoder.finish()
            self._originals = ()
            self._begin(0, RecordingProgress(), 0)
        if self._compressed is None and not self._has_opened():
            return
        if not self._compressed:
            if piece := self.tail.read():
                yield from self._decoder.feed(piece)
            return
        size = self._present_size()
        if self._fresh is None:
            if size == self._size:
                return
            self._size, self._fresh = size, self._new_items()
        found = 0
        for item in islice(self._fresh, _REQUESTS):
            found += 1
            yield item
        if found < _REQUESTS:
            self._fresh, self.tail.complete = None, self.tail.mark.position

    def _present_size(self) -> int:
        return os.fstat(self.tail.file.fileno()).st_size

    def _has_opened(self) -> bool:
        """Find out whether the file is compressed, and a copy; return False while that is not clear."""
        size = self._present_size()
        if self._growing and (size < _HEAD or size == self._size):
            return False
        if is_compressed(raw := _Bytes(self.tail)):
            if not self._at and self._originals:
                copied = _copied(raw, self._originals)
                if copied is None and self._growing:
                    self._size = size
                    return False
                self._progress = copied or self._progress
            self._compressed, self._size = True, -1
            self._skipped_bytes, self._skipped_items = 0 if self._at else self._progress.offset, self._items
            if self._at:
                self._progress = RecordingProgress()
            self._decoder = RecordingDecoder(self._path, self._progress)
            self._archive = growing_pieces(_TailBytes(self.tail), lambda: self._growing, self._at)
        else:
            self._compressed = False
            self.tail.go_to(self._at)
        return True

    def _new_items(self) -> Iterator[Record | Damage]:
        """Yield what a compressed file holds, to where it ends by now."""
        for piece in self._archive:
            if isinstance(piece, Gap):
                found = self._decoder.gap(piece.reason)
            elif not piece:
                return
            else:
                skipped = min(self._skipped_bytes, len(piece))
                self._skipped_bytes -= skipped
                found = self._decoder.feed(piece[skipped:])
            for item in found:
                if self._skipped_items:
                    self._skipped_items -= 1
                else:
                    yield item

    def handed_over(self, item: Record | Damage) -> None:
        """Note that everything up to an item was handed over."""
        self._items += 1
        if not self._compressed:
            self._progress = item.progress or self._progress
            self.tail.complete = self._progress.offset

    def place(self) -> ReadFile | None:
        """Return how far it was handed over, None when that is as it was when this was asked last."""
        if self._noted == (self._progress, self._items):
            return None
        self._noted = (self._progress, self._items)
        if self._compressed:
            return ReadFile.of(self.tail, self.tail.mark.position, self._progress, self._items)
        return ReadFile.of(self.tail, self._progress.offset, self._progress, 0)

    def close(self) -> Iterator[Record | Damage]:
        """Yield what is left, to the end of the file, and let go of it."""
        self._growing = False
        with self.tail.file:
            if self._compressed is None:
                self._has_opened()
            if self._compressed:
                yield from chain(self._fresh or (), self._new_items())
            else:
                yield from chain.from_iterable(map(self._decoder.feed, iter(self.tail.read, b"")))
            yield from self._decoder.finish()


class _Bytes:
    """Reads a tail's file and leaves the tail as it is."""

    def __init__(self, tail: Tail) -> None:
        self._handle, self._position = tail.file.fileno(), 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        piece = os.pread(self._handle, size, self._position)
        self._position += len(piece)
        return piece

    def seek(self, position: int, /) -> int:
        """Go to a position."""
        self._position = position
        return position


class _TailBytes:
    """Reads a tail's file through the tail, which knows what it read."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        return self._tail.read(size)

    def seek(self, position: int, /) -> int:
        """Go to a position."""
        if position > self._tail.mark.position:
            self._tail.go_to(position)
        self._tail.back_to(position)
        return position


def _copied(file: _Bytes, originals: Sequence[Original]) -> RecordingProgress | None:
    """Return how far the content of a compressed file was read in an original; None if the file ends too early to say.

    It is the beginning if it is a copy of none of them.
    """
    open_ends = sorted(originals, key=lambda original: original.mark.position)
    copied = RecordingProgress()
    first = last = b""
    total = 0
    file.seek(0)
    for piece in pieces(file):
        if isinstance(piece, Gap):
            return None
        first = (first + piece[:MARK])[:MARK]
        if len(first) == MARK:
            open_ends = [original for original in open_ends if original.mark.first == first]
        while open_ends and open_ends[0].mark.position <= total + len(piece):
            mark, progress = open_ends.pop(0)
            if mark.last == (last + piece[: mark.position - total])[-MARK:]:
                copied = progress
        if not open_ends and len(first) == MARK:
            return copied
        last, total = (last + piece)[-MARK:], total + len(piece)
    return copied
