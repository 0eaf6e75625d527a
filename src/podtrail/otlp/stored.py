"""A request as a store keeps it: with a client's note, a checksum and its arrival behind what was received.

All three are unknown fields to every other reader of OTLP, so that a store can be read as a recording is:

    request as received
    1002 (bytes)     note, its length (3 bytes, little-endian), kind (1 byte)
    1001 (fixed64)   4 bytes that are the same in all of a file, CRC-32 of these, the length and everything else
    1000 (fixed64)   arrival, Unix nanoseconds, 0: none (`podtrail.otlp.arrival`)
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from podtrail.otlp.arrival import FIELD_NUMBER as _ARRIVAL

_NOTE = 1002
_CHECK = 1001
_FIXED64 = 1
_BYTES = 2


def _tag(number: int, wire_type: int) -> bytes:
    return bytes([number << 3 & 127 | 128 | wire_type, number >> 4])


MARK = 4
"""Bytes that its writer draws for each file. They tell where something stored ends, and keep what a sender has put into
a span from passing for something stored."""
LONGEST_NOTE = (1 << 24) - 1
"""Bytes."""

_NOTE_TAG = _tag(_NOTE, _BYTES)
_CHECK_TAG = _tag(_CHECK, _FIXED64)
_ARRIVAL_TAG = _tag(_ARRIVAL, _FIXED64)
_END = struct.Struct(f"<{len(_CHECK_TAG)}s{MARK}sI{len(_ARRIVAL_TAG)}sQ")
_find_end = re.compile(re.escape(_CHECK_TAG) + b"(.{%d}).{4}" % MARK + re.escape(_ARRIVAL_TAG), re.DOTALL).finditer
_BEHIND = _END.size - len(_CHECK_TAG) - MARK
_FOOTER = struct.Struct("<I")
_KIND_SHIFT = 24
_WIDE = 5
_NARROW_LIMIT = 128
LEAST = len(_NOTE_TAG) + 1 + _FOOTER.size + _END.size
"""Bytes of a stored request of which nothing is said but its kind."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written into a store and read from it."""

    kind: int
    """What it is to the one who keeps it, 0 to 253; 0: spans that arrived."""
    body: bytes = b""
    """A serialized ExportTraceServiceRequest without arrival; may be empty."""
    arrival: int = 0
    """Unix nanoseconds; 0: none."""
    note: bytes = b""
    """Whatever else is to be kept with it."""


def write_stored(entry: Entry, mark: bytes) -> list[bytes]:
    """Return the pieces that an entry is stored as, in a file with this mark."""
    note = entry.note + _FOOTER.pack(entry.kind << _KIND_SHIFT | len(entry.note))
    head = _NOTE_TAG + _varint(len(note))
    length = len(entry.body) + len(head) + len(note) + _END.size
    check = crc32(entry.body, crc32(mark + length.to_bytes(4, "big")))
    check = crc32(entry.arrival.to_bytes(8, "little"), crc32(note, crc32(head, check)))
    return [entry.body, head + note + _END.pack(_CHECK_TAG, mark, check, _ARRIVAL_TAG, entry.arrival)]


def stored_size(entry: Entry) -> int:
    """Return how many bytes `write_stored` gives.

    Raises:
        ValueError: the entry can't be stored: its note is too long, its arrival no time, or its kind none.
    """
    if len(entry.note) > LONGEST_NOTE or not 0 <= entry.kind <= 255 or not 0 <= entry.arrival < 1 << 64:
        said = f"kind {entry.kind}, arrival {entry.arrival}, {len(entry.note)} bytes of note"
        raise ValueError(f"an entry can't be stored: {said}")
    note = len(entry.note) + _FOOTER.size
    return len(entry.body) + len(_NOTE_TAG) + len(_varint(note)) + note + _END.size


def write_padding(size: int, kind: int, mark: bytes) -> bytes:
    """Return `size` bytes that are a stored request with nothing in it, at least `LEAST`."""
    width = 1 if size - LEAST + _FOOTER.size < _NARROW_LIMIT else _WIDE
    length = size - len(_NOTE_TAG) - width - _FOOTER.size - _END.size
    note = bytes(length) + _FOOTER.pack(kind << _KIND_SHIFT | length)
    head = _NOTE_TAG + _varint(len(note), width)
    check = crc32(bytes(8), crc32(note, crc32(head, crc32(mark + size.to_bytes(4, "big")))))
    return head + note + _END.pack(_CHECK_TAG, mark, check, _ARRIVAL_TAG, 0)


def mark_of(raw: memoryview) -> bytes | None:
    """Return the mark of bytes that are whole and just as they were written; None of all others."""
    if len(raw) < LEAST:
        return None
    tag, mark, check, arrival_tag, _ = _END.unpack_from(raw, len(raw) - _END.size)
    if tag != _CHECK_TAG or arrival_tag != _ARRIVAL_TAG:
        return None
    content = crc32(raw[: -_END.size], crc32(mark + len(raw).to_bytes(4, "big")))
    return mark if crc32(raw[-8:], content) == check else None


def is_stored_without_request(raw: bytes) -> bool:
    """Say whether nothing is stored but a note."""
    return raw.startswith(_NOTE_TAG)


def ends_of_any(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where something stored may end, with its mark."""
    for found in _find_end(data):
        yield found.start() + _END.size, found[1]


def ends_of(data: bytes, mark: bytes, at: int) -> Iterator[int]:
    """Yield where something stored with this mark may end, from `at` on."""
    wanted = _CHECK_TAG + mark
    while (at := data.find(wanted, at)) >= 0:
        at += len(wanted)
        if at + _BEHIND <= len(data):
            yield at + _BEHIND


def kind_of(raw: memoryview) -> int:
    """Return the kind of what is stored."""
    return int(raw[-_END.size - 1])


def read_stored(raw: memoryview) -> Entry:
    """Return what is stored, of bytes that have a mark."""
    end = len(raw) - _END.size - _FOOTER.size
    (footer,) = _FOOTER.unpack_from(raw, end)
    note = end - (footer & LONGEST_NOTE)
    body = note - len(_NOTE_TAG) - len(_varint(end - note + _FOOTER.size))
    arrival = int.from_bytes(raw[-8:], "little")
    return Entry(footer >> _KIND_SHIFT, bytes(raw[:body]), arrival, bytes(raw[note:end]))


def _varint(value: int, width: int = 1) -> bytes:
    """Return a varint of at least `width` bytes."""
    out = bytearray()
    while value >= _NARROW_LIMIT or len(out) < width - 1:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
