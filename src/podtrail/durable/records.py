"""What the log holds: arrivals, and what exporters are done with."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import adler32, crc32

from podtrail.otlp import Batch, read_request, write_request
from podtrail.storage import Entry

ARRIVAL = 0
DONE = 1

_NOW = struct.Struct("<Q")
_KEY = struct.Struct("<16sIIII")
KEY_SIZE = _KEY.size
_LENGTH = struct.Struct("<H")
_NO_TRACE = bytes(16)
_U32 = 0xFFFFFFFF


def key_of(batch: Batch) -> bytes:
    """Return what tells a batch from every other: its first trace, two checksums, bytes and number of its spans.

    One of 32 bits would let one of some billion requests pass for another of its trace. Verdicts count only where there
    are no spans.
    """
    chunks = [group[3] for group in batch.groups] or [verdict.trace_id for verdict in batch.verdicts]
    crc = size = 0
    adler = 1
    for chunk in chunks:
        crc = crc32(chunk, crc)
        adler = adler32(chunk, adler)
        size += len(chunk)
    first = batch.groups[0].trace_id if batch.groups else chunks[0] if chunks else _NO_TRACE
    return _KEY.pack(first, crc, adler, size & _U32, batch.span_count & _U32)


@dataclass(frozen=True, slots=True)
class LoggedArrival:
    """A batch as it came in."""

    receiver: str
    now: int
    """The time that the chains were told, Unix nanoseconds."""
    batch: Batch

    def entry(self) -> Entry:
        """Return it as it is written."""
        note = _NOW.pack(self.now) + self.receiver.encode()
        return Entry(ARRIVAL, write_request(self.batch.groups), self.batch.arrived, note)

    @classmethod
    def read(cls, entry: Entry) -> "LoggedArrival":
        """Return what was written.

        Raises:
            ValueError: it is no arrival.
        """
        if len(entry.note) < _NOW.size:
            raise ValueError("its note is cut off")
        (now,) = _NOW.unpack_from(entry.note)
        receiver = entry.note[_NOW.size :].decode()
        return cls(receiver, now, Batch(read_request(entry.body).groups, entry.arrival))


@dataclass(frozen=True, slots=True)
class LoggedDeliveries:
    """Batches of one pipeline that one exporter is done with, by key."""

    pipeline: str
    exporter: str
    now: int
    """When that was written, Unix nanoseconds: all of them have left the chains by then."""
    keys: Sequence[bytes]

    def entry(self) -> Entry:
        """Return them as they are written."""
        names = (self.pipeline.encode(), self.exporter.encode())
        return Entry(
            DONE, note=_NOW.pack(self.now) + b"".join([*(_LENGTH.pack(len(name)) + name for name in names), *self.keys])
        )

    @classmethod
    def read(cls, entry: Entry) -> "LoggedDeliveries":
        """Return what was written.

        Raises:
            ValueError: it is no such list.
        """
        note, at = entry.note, _NOW.size
        names: list[str] = []
        if len(note) < at:
            raise ValueError("its note is cut off")
        (now,) = _NOW.unpack_from(note)
        for _ in range(2):
            if at + _LENGTH.size > len(note):
                raise ValueError("its note is cut off")
            (length,) = _LENGTH.unpack_from(note, at)
            at += _LENGTH.size + length
            names.append(note[at - length : at].decode())
        if (len(note) - at) % KEY_SIZE:
            raise ValueError("its note is cut off")
        pipeline, exporter = names
        return cls(pipeline, exporter, now, [note[i : i + KEY_SIZE] for i in range(at, len(note), KEY_SIZE)])
