"""What a segment holds: frames, each a length (4 bytes, big-endian) and what is stored, as in any `.otlp` recording.

The first says by which version the segment was written. Behind damage the next one is found by the damaged one's
length, or by the mark at the end of everything stored in this segment, whichever leads to a sound frame.
"""

import secrets
from collections.abc import Iterator
from typing import NamedTuple

from podtrail.otlp.stored import (
    LEAST,
    MARK,
    Entry,
    ends_of,
    ends_of_any,
    kind_of,
    mark_of,
    read_stored,
    stored_size,
    write_padding,
    write_stored,
)

VERSION = 1
"""Of the format of segments and states."""
CLIENTS_KINDS = range(254)
LARGEST_FRAME = 96 << 20
"""Bytes: the largest request, the longest note, and some. A longer one is damage."""

_LENGTH = 4
_HEAD = 255
_PADDING = 254
_HEAD_NOTE = b"podtrail storage "
_LARGEST_PADDING = 8 << 20
_LOOKED_BACK = 1 << 20
"""Bytes in front of the end of a frame in which its beginning is looked for, where all before it is damaged."""
LEAST_FRAME = _LENGTH + LEAST


class Position(NamedTuple):
    """Where an entry stands in a journal; later entries have higher ones."""

    segment: int
    offset: int


class Frame(NamedTuple):
    """A sound frame: where it begins and ends in its segment."""

    begin: int
    end: int


class LostBytes(NamedTuple):
    """Bytes of a segment that are no frame."""

    begin: int
    end: int
    torn: bool
    """Whether its writer never finished it."""


def new_mark() -> bytes:
    """Draw the mark of a segment."""
    return secrets.token_bytes(MARK)


def write_frame(entry: Entry, mark: bytes) -> list[bytes]:
    """Return the pieces of an entry's frame."""
    pieces = write_stored(entry, mark)
    return [sum(map(len, pieces)).to_bytes(_LENGTH, "big"), *pieces]


def frame_size(entry: Entry) -> int:
    """Return how many bytes an entry's frame has.

    Raises:
        ValueError: the entry can't be stored.
    """
    size = _LENGTH + stored_size(entry)
    if size > LARGEST_FRAME:
        raise ValueError(f"an entry of {size} bytes can't be stored, {LARGEST_FRAME} are the most")
    return size


def head_frame(mark: bytes) -> bytes:
    """Return what a segment begins with."""
    return b"".join(write_frame(Entry(_HEAD, note=_HEAD_NOTE + b"%04d" % VERSION), mark))


HEAD_SIZE = len(head_frame(bytes(MARK)))


def padding_frames(size: int, mark: bytes) -> Iterator[bytes]:
    """Yield frames that say nothing, `size` bytes in all, at least `LEAST_FRAME`."""
    while size:
        some = size if size <= _LARGEST_PADDING else min(_LARGEST_PADDING, size - LEAST_FRAME)
        yield (some - _LENGTH).to_bytes(_LENGTH, "big") + write_padding(some - _LENGTH, _PADDING, mark)
        size -= some


class SegmentContent:
    """The bytes of a segment, read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._view = memoryview(data)
        self.mark = self._marked()
        """The segment's; None when nothing in it is sound."""

    def version(self) -> int | None:
        """Return the version that the segment says it was written by, None when it doesn't."""
        frame = self.frame_at(0)
        if frame is None or kind_of(self._raw(frame)) != _HEAD:
            return None
        version = read_stored(self._raw(frame)).note.removeprefix(_HEAD_NOTE)
        return int(version) if version.isdigit() else None

    def entry(self, frame: Frame) -> Entry | None:
        """Return the entry in a frame; None when it is none of a client's."""
        raw = self._raw(frame)
        return read_stored(raw) if kind_of(raw) in CLIENTS_KINDS else None

    def frames(self) -> Iterator[Frame | LostBytes]:
        """Yield what the segment holds, in its order."""
        at = 0
        while at < len(self.data):
            found: Frame | LostBytes | None = self.frame_at(at) or self._frame_of_wrong_length(at)
            if found is None:
                end = self._next_frame(at)
                found = LostBytes(at, end, torn=end == len(self.data) and self._is_torn(at))
            yield found
            at = found.end

    def mended(self) -> Iterator[bytes | memoryview]:
        """Yield the segment, in pieces, as it is without what is lost: frames, each where it was as far as can be.

        Padding is where there was damage; none at the end, and none where there is too little room for it.
        """
        for found in self.frames():
            if isinstance(found, Frame):
                raw = self._raw(found)
                yield len(raw).to_bytes(_LENGTH, "big")
                yield raw
            elif self.mark and found.end < len(self.data) and found.end - found.begin >= LEAST_FRAME:
                yield from padding_frames(found.end - found.begin, self.mark)

    def frame_at(self, at: int) -> Frame | None:
        """Return the sound frame that begins at `at`."""
        end = self._end_at(at)
        if not end or end > len(self.data):
            return None
        mark = mark_of(self._view[at + _LENGTH : end])
        return Frame(at, end) if mark is not None and mark == self.mark else None

    def _raw(self, frame: Frame) -> memoryview:
        return self._view[frame.begin + _LENGTH : frame.end]

    def _end_at(self, at: int) -> int:
        """Return where a frame that begins at `at` says it ends, 0 when it says nothing possible."""
        length = int.from_bytes(self.data[at : at + _LENGTH], "big")
        return at + _LENGTH + length if LEAST <= length <= LARGEST_FRAME and at + LEAST_FRAME <= len(self.data) else 0

    def _marked(self) -> bytes | None:
        """Find the mark: that of the first frame or of the one behind it, else of any that has another behind it."""
        for at in (0, HEAD_SIZE):
            end = self._end_at(at)
            if 0 < end <= len(self.data) and (mark := mark_of(self._view[at + _LENGTH : end])):
                return mark
        for begin, mark in ends_of_any(self.data):
            end = self._end_at(begin)
            if 0 < end <= len(self.data) and mark_of(self._view[begin + _LENGTH : end]) == mark:
                return mark
        return None

    def _frame_of_wrong_length(self, at: int) -> Frame | None:
        """Return the frame at `at` if nothing but its length is damaged."""
        if self.mark is None:
            return None
        end = next(ends_of(self.data, self.mark, at + _LENGTH), 0)
        return Frame(at, end) if end and mark_of(self._view[at + _LENGTH : end]) else None

    def _next_frame(self, at: int) -> int:
        """Return where the next sound frame begins behind a damaged one; the end of the data when there is none."""
        size = len(self.data)
        if self.mark is None:
            return size
        end = self._end_at(at)
        if end and (end == size or self.frame_at(end)):
            return end
        for end in ends_of(self.data, self.mark, at + 1):
            if begin := self._begin_of(end, at + 1):
                return begin
            if end == size or self.frame_at(end):
                return end
        return size

    def _begin_of(self, end: int, at: int) -> int:
        """Return where the sound frame begins that ends at `end`, from `at` on; 0 when there is none near."""
        for begin in range(max(at, end - _LOOKED_BACK), end - LEAST_FRAME + 1):
            if self._end_at(begin) == end and self.frame_at(begin):
                return begin
        return 0

    def _is_torn(self, at: int) -> bool:
        """Say whether a frame was begun at `at` and never finished: cut off, or never filled."""
        return (
            self._end_at(at) > len(self.data)
            or at + LEAST_FRAME > len(self.data)
            or not any(self.data[at : at + LEAST_FRAME])
        )
