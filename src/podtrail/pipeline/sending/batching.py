"""What leaves as one request: small batches put together, large ones cut."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from podtrail.component import Ledger
from podtrail.otlp import Batch, Group, frame, merge, split

_MOST_SPANS = 8192
_MOST_BYTES = 512 << 10
"""Below the 4 MiB that servers take unless told otherwise; gzip in gRPC holds the event loop up for about 15 ms."""
LARGEST_REQUEST = 64 << 20
"""What the OTLP specification lets a client send at most."""
_FRAMING = 16
"""Room for a message's tag and length, generously."""


@dataclass(slots=True, eq=False)
class Offered:
    """A batch as it was offered, until all of it has come to an end."""

    batch: Batch
    left: int
    """Spans in it without an end."""
    done: Callable[[], None] | None
    """To be called at its end; the batch of who wants to be called is kept when the queue is cut off."""


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
    """Those without an end."""

    def takes(self, ledger: Ledger, spans: int, size: int) -> bool:
        """Say whether a batch of so many spans and bytes may join."""
        return self.ledger is ledger and self.spans + spans <= _MOST_SPANS and self.size + size <= _MOST_BYTES

    def pieces(self) -> Iterator[Batch]:
        """Yield what is to be sent, request by request."""
        return cut(merge([offered.batch for offered in self.batches]))

    def ended(self, spans: int, decisions: int) -> None:
        """Take note that so many more of the spans, in order, and of the verdicts have come to an end."""
        self.spans -= spans
        self.decisions -= decisions
        while self.batches and self.batches[0].left <= spans:
            first = self.batches.popleft()
            spans -= first.left
            if first.done is not None:
                first.done()
        if self.batches:
            self.batches[0].left -= spans

    def cut_off(self) -> tuple[int, int]:
        """Forget what nobody else keeps; return its spans and verdicts without an end."""
        lost = [offered for offered in self.batches if offered.done is None]
        spans = sum([offered.left for offered in lost])
        decisions = min(self.decisions, sum([len(offered.batch.verdicts) for offered in lost]))
        self.batches = deque([offered for offered in self.batches if offered.done is not None])
        self.spans -= spans
        self.decisions -= decisions
        return spans, decisions


def request_size(batch: Batch) -> int:
    """Return the bytes a batch makes as a request, or a little more: headers shared by neighbours count each time."""
    return sum([len(group[0]) + len(group[1]) + len(group[3]) + 2 * _FRAMING for group in batch.groups])


def cut(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in pieces that servers take; verdicts go with the first.

    A single span may exceed the bound: its size is for the caller to judge by `request_size`.
    """
    if request_size(batch) <= _MOST_BYTES:
        yield batch
        return
    verdicts = batch.verdicts
    piece: list[Group] = []
    size = 0
    resource = scope = None
    for group in chain.from_iterable(map(_cut_group, batch.groups)):
        more = len(group.spans) + _FRAMING
        if group.resource != resource or group.scope != scope:
            more += len(group.resource) + len(group.scope) + _FRAMING
        if piece and size + more > _MOST_BYTES:
            yield replace(batch, groups=piece, verdicts=verdicts)
            verdicts = ()
            piece, size = [], 0
            more = len(group.spans) + len(group.resource) + len(group.scope) + 2 * _FRAMING
        piece.append(group)
        size += more
        resource, scope = group.resource, group.scope
    yield replace(batch, groups=piece, verdicts=verdicts)


def _cut_group(group: Group) -> Iterator[Group]:
    """Yield a group whole, or in runs of its spans when a request could not hold it."""
    bound = _MOST_BYTES - len(group.resource) - len(group.scope) - 2 * _FRAMING
    if len(group.spans) <= bound:
        yield group
        return
    run: list[bytes] = []
    size = 0
    for span in split(group.spans):
        if run and size + len(span) + _FRAMING > bound:
            yield group._replace(spans=frame(run), span_count=len(run))
            run, size = [], 0
        run.append(span)
        size += len(span) + _FRAMING
    yield group._replace(spans=frame(run), span_count=len(run))
