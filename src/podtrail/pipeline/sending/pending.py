"""What waits in a queue: batches as they were offered, and those of them that leave as one request."""

import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from podtrail.component import Ledger
from podtrail.otlp import Batch, merge
from podtrail.pipeline.sending.batching import MOST_BYTES, cut
from podtrail.storage import Position

_MOST_SPANS = 8192
_ON_DISK = struct.Struct("<QIQI")


class Stored(NamedTuple):
    """Which batch this is in the queue's journal."""

    number: int
    """Later batches have higher ones."""
    position: Position


@dataclass(slots=True, eq=False)
class Offered:
    """A batch as it was offered, until all of it has come to an end."""

    batch: Batch | None
    """None while it is on disk alone."""
    left: int
    """Spans in it without an end."""
    done: Callable[[], None] | None = None
    """To be called at its end; the batch of who wants to be called is kept when the queue is cut off."""
    stored: Stored | None = None
    """None when it is in memory alone."""

    def finish(self) -> None:
        """Call `done`, once."""
        done, self.done = self.done, None
        if done is not None:
            done()


@dataclass(slots=True, eq=False)
class PendingBatches:
    """Batches of one pipeline that wait to leave together."""

    ledger: Ledger
    cost: int
    """What they take of the queue's capacity, in the sizer's unit."""
    spans: int
    """Spans in them whose end is not in the ledger yet."""
    decisions: int
    """Verdicts in them of which the same is true."""
    size: int
    """Bytes."""
    ripe_at: float
    """When they leave even if there is room for more, in the loop's time."""
    batches: deque[Offered] = field(default_factory=deque)
    """Those without an end, while they are not `packed`."""
    packed: bytes = b""
    """Where they are on disk."""

    @property
    def is_empty(self) -> bool:
        """Whether everything in it has come to its end."""
        return not self.batches and not self.packed

    @property
    def is_stored(self) -> bool:
        """Whether everything in it is on disk, or soon will be."""
        return all(offered.stored is not None for offered in self.batches)

    @property
    def is_kept(self) -> bool:
        """Whether all of it outlives this queue: it is on disk, or kept by who offered it."""
        return all(offered.stored is not None or offered.done is not None for offered in self.batches)

    def takes(self, ledger: Ledger, spans: int, size: int) -> bool:
        """Say whether a batch of so many spans and bytes may join."""
        return self.ledger is ledger and self.spans + spans <= _MOST_SPANS and self.size + size <= MOST_BYTES

    def pieces(self) -> Iterator[Batch]:
        """Yield what is to be sent, request by request."""
        return cut(merge(self.whole()))

    def whole(self) -> Sequence[Batch]:
        """Return the batches as they were offered."""
        return [offered.batch for offered in self.batches if offered.batch is not None]

    def ended(self, spans: int, decisions: int) -> Iterator[Offered]:
        """Take note that so many more of the spans, in order, and of the verdicts have come to an end.

        Yields the batches that have come to theirs, and at last one that has in part.
        """
        self.spans -= spans
        self.decisions -= decisions
        while self.batches and self.batches[0].left <= spans:
            first = self.batches.popleft()
            spans -= first.left
            first.left = 0
            yield first
        if self.batches and spans:
            self.batches[0].left -= spans
            yield self.batches[0]

    def cut_off(self, written: int) -> tuple[int, int]:
        """Forget what nobody keeps; return its spans and verdicts without an end.

        Who wants to be called at a batch's end keeps it, and so does the journal with those up to the number `written`.
        """
        if self.packed and self._last_packed() > written:
            self.unpack()
        lost = [offered for offered in self.batches if offered.done is None and not _is_kept(offered, written)]
        spans = sum([offered.left for offered in lost])
        decisions = min(self.decisions, sum([len(offered.batch.verdicts) for offered in lost if offered.batch]))
        gone = set(map(id, lost))
        self.batches = deque([offered for offered in self.batches if id(offered) not in gone])
        self.spans -= spans
        self.decisions -= decisions
        return spans, decisions

    def pack(self) -> bool:
        """Leave the batches to the disk, if they are all there; return whether they are."""
        places = [(*offered.stored, offered.left) for offered in self.batches if offered.stored is not None]
        if len(places) < len(self.batches):
            return False
        self.packed = b"".join([_ON_DISK.pack(number, *position, left) for number, position, left in places])
        self.batches.clear()
        return True

    def unpack(self) -> None:
        """Say again of each batch where it is on disk."""
        for number, segment, offset, left in _ON_DISK.iter_unpack(self.packed):
            self.batches.append(Offered(None, left, stored=Stored(number, Position(segment, offset))))
        self.packed = b""

    def _last_packed(self) -> int:
        return int(_ON_DISK.unpack_from(self.packed, len(self.packed) - _ON_DISK.size)[0])


def _is_kept(offered: Offered, written: int) -> bool:
    return offered.stored is not None and offered.stored.number <= written
