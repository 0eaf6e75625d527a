"""What a segment holds: frames, each a length (4 bytes, big-endian) and what is stored, as in any `.otlp` recording.

A segment begins with a frame that says by which version it was written. Behind damage the next frame is found by its
length or by the mark at the end of everything stored, whichever leads to a frame whose checksum is right.
"""

from collections.abc import Iterator
from typing import NamedTuple

from podtrail.otlp.stored import (
    BEHIND_MARK,
    LEAST,
    MARK,
    Entry,
    is_stored,
    kind_of,
    read_stored,
    stored_size,
    write_padding,
    write_stored,
)

VERSION = 1
"""Of the format of segments and states."""
LONGEST_FRAME = 72 << 20
"""Bytes: a request of 64 MiB, and the longest note."""
CLIENTS_KINDS = range(254)

_LENGTH = 4
_HEAD = 255
_PADDING = 254
_HEAD_NOTE = b"podtrail storage "
_LARGEST_PADDING = 8 << 20
LEAST_FRAME = _LENGTH + LEAST


class Frame(NamedTuple):
    """A sound frame: where it begins and ends in its segment."""

    begin: int
    end: int


class LostBytes(NamedTuple):
    """Bytes of a segment that are no frame."""

    begin: int
    end: int
    torn: bool
    """Whether the file ends within it."""


def write_frame(entry: Entry) -> list[bytes]:
    """Return the pieces of an entry's frame."""
    pieces = write_stored(entry)
    return [sum(map(len, pieces)).to_bytes(_LENGTH, "big"), *pieces]


def frame_size(entry: Entry) -> int:
    """Return how many bytes an entry's frame has."""
    return _LENGTH + stored_size(entry)


def head_frame() -> bytes:
    """Return what every segment begins with."""
    return b"".join(write_frame(Entry(_HEAD, note=_HEAD_NOTE + str(VERSION).encode())))


def padding_frames(size: int) -> Iterator[bytes]:
    """Yield frames that say nothing, `size` bytes in all, at least `LEAST_FRAME`."""
    while size:
        some = size if size <= _LARGEST_PADDING else min(_LARGEST_PADDING, size - LEAST_FRAME)
        yield (some - _LENGTH).to_bytes(_LENGTH, "big") + write_padding(some - _LENGTH, _PADDING)
        size -= some


def version_of(data: memoryview) -> int | None:
    """Return the version that a segment says it was written by, None when it doesn't."""
    frame = _frame_at(data, 0)
    if frame is None or kind_of(data[_LENGTH : frame.end]) != _HEAD:
        return None
    version = read_stored(data[_LENGTH : frame.end]).note.removeprefix(_HEAD_NOTE)
    return int(version) if version.isdigit() else None


def entry_in(data: memoryview, frame: Frame) -> Entry | None:
    """Return the entry in a frame; None when it is none of a client's."""
    raw = data[frame.begin + _LENGTH : frame.end]
    return read_stored(raw) if kind_of(raw) in CLIENTS_KINDS else None


def frames(data: memoryview) -> Iterator[Frame | LostBytes]:
    """Yield what a segment holds, in its order."""
    at = 0
    while at < len(data):
        found: Frame | LostBytes | None = _frame_at(data, at) or _frame_of_wrong_length(data, at)
        if found is None:
            end = _next_frame(data, at)
            found = LostBytes(at, end, torn=end == len(data) and _is_torn(data, at))
        yield found
        at = found.end


def _length_at(data: memoryview, at: int) -> int:
    """Return the length that is said at `at`, 0 when it is none."""
    length = int.from_bytes(data[at : at + _LENGTH], "big")
    return length if LEAST <= length <= LONGEST_FRAME and at + LEAST_FRAME <= len(data) else 0


def _frame_at(data: memoryview, at: int) -> Frame | None:
    length = _length_at(data, at)
    end = at + _LENGTH + length
    if length and end <= len(data) and is_stored(data[at + _LENGTH : end]):
        return Frame(at, end)
    return None


def _ends(data: memoryview, at: int) -> Iterator[int]:
    """Yield where frames may end behind `at`, by the marks."""
    raw = data.obj
    assert isinstance(raw, bytes)
    while (at := raw.find(MARK, at)) >= 0:
        at += len(MARK)
        if at + BEHIND_MARK <= len(data):
            yield at + BEHIND_MARK


def _frame_of_wrong_length(data: memoryview, at: int) -> Frame | None:
    """Return the frame at `at` if nothing but its length is damaged."""
    end = next(_ends(data, at + _LENGTH), 0)
    return Frame(at, end) if end and is_stored(data[at + _LENGTH : end]) else None


def _next_frame(data: memoryview, at: int) -> int:
    """Return where the next sound frame begins behind a damaged one; the end of the data when there is none."""
    length = _length_at(data, at)
    end = at + _LENGTH + length
    if length and (end == len(data) or (end < len(data) and _frame_at(data, end))):
        return end
    for end in _ends(data, at + 1):
        if end == len(data) or _frame_at(data, end):
            return end
    return len(data)


def _is_torn(data: memoryview, at: int) -> bool:
    """Say whether a frame was begun at `at` and never finished."""
    return at + _LENGTH + _length_at(data, at) > len(data) or not any(data[at : at + LEAST_FRAME])
