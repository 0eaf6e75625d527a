"""What leaves as one request: small batches put together, large ones cut."""

from collections.abc import Iterator
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


@dataclass(slots=True)
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
    batches: list[Batch] = field(default_factory=list)

    def takes(self, ledger: Ledger, spans: int, size: int) -> bool:
        """Say whether a batch of so many spans and bytes may join."""
        return self.ledger is ledger and self.spans + spans <= _MOST_SPANS and self.size + size <= _MOST_BYTES

    def pieces(self) -> Iterator[Batch]:
        """Yield what is to be sent, request by request."""
        return cut(merge(self.batches))


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
