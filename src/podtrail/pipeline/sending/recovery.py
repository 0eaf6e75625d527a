"""What a persistent queue finds in its journal at the start: the batches without an end, in their order."""

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Iterator

from podtrail.component import Ledger
from podtrail.pipeline.sending.pending import Offered, PendingBatches, Stored
from podtrail.pipeline.sending.stored_batch import ENDED, Ended, StoredHead, read_ended, read_head
from podtrail.storage import Journal, Position

_AT_ONCE = 64
"""Entries that are read before somebody else gets a turn."""


class FoundBatches:
    """Batches that a journal holds, a row each: there may be millions of them, and few are in memory at any time."""

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._segments = array("I")
        self._offsets = array("Q")
        self._sizes = array("Q")
        self._spans = array("I")
        """Those without an end."""
        self._waits = bytearray()
        self._last = 0

    @property
    def next_number(self) -> int:
        """The number of the next batch."""
        return self._last + 1

    def put(self, head: StoredHead, position: Position) -> None:
        """Add a batch; one that was there already has been written once more, to another place."""
        self._last = max(self._last, head.number)
        at = bisect_left(self._numbers, head.number)
        if at == len(self._numbers) or self._numbers[at] != head.number:
            self._numbers.insert(at, head.number)
            self._segments.insert(at, position.segment)
            self._offsets.insert(at, position.offset)
            self._sizes.insert(at, head.size)
            self._spans.insert(at, head.spans)
            self._waits.insert(at, 1)
        else:
            self._segments[at], self._offsets[at] = position
            self._sizes[at], self._spans[at] = head.size, head.spans

    def end(self, ended: Ended) -> None:
        """Take note of ends."""
        for first, count in ended.runs:
            self._last = max(self._last, first + count - 1)
            begin = bisect_left(self._numbers, first)
            end = bisect_left(self._numbers, first + count, begin)
            self._waits[begin:end] = bytes(end - begin)
        for number, spans in ended.left.items():
            at = bisect_left(self._numbers, number)
            if at < len(self._numbers) and self._numbers[at] == number:
                self._spans[at] = spans

    def __iter__(self) -> Iterator[tuple[Stored, int, int]]:
        """Yield those without an end: where they are, their spans and their size."""
        for at, waits in enumerate(self._waits):
            if waits:
                position = Position(self._segments[at], self._offsets[at])
                yield Stored(self._numbers[at], position), self._spans[at], self._sizes[at]


async def find_batches(journal: Journal) -> FoundBatches:
    """Read a journal."""
    found = FoundBatches()
    for at, (position, entry) in enumerate(journal.entries()):
        try:
            if entry.kind == ENDED:
                found.end(read_ended(entry))
            else:
                found.put(read_head(entry), position)
        except ValueError as error:
            journal.report_foreign(position, entry, str(error))
        if at % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return found


def in_line(found: FoundBatches, ledger: Ledger, *, joins: bool) -> Iterator[PendingBatches]:
    """Yield what was found as it is to be sent, left on disk; `joins`: whether batches may be put together."""
    pending: PendingBatches | None = None
    for stored, spans, size in found:
        if pending is None or not joins or not pending.takes(ledger, spans, size):
            if pending is not None:
                pending.pack()
                yield pending
            pending = PendingBatches(ledger, 0, 0, 0, 0, 0.0)
        pending.batches.append(Offered(None, spans, stored=stored))
        pending.spans += spans
        pending.size += size
    if pending is not None:
        pending.pack()
        yield pending
