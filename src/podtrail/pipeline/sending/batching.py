"""What leaves as one request: large batches are cut."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from podtrail.otlp import Batch, Group, frame, split

MOST_BYTES = 512 << 10
"""Below the 4 MiB that servers take unless told otherwise; gzip in gRPC holds the event loop up for about 15 ms."""
LARGEST_REQUEST = 64 << 20
"""What the OTLP specification lets a client send at most."""
_VERDICT_SIZE = 512
"""About what a verdict takes in memory, its spans aside."""
_FRAMING = 16
"""Room for a message's tag and length, generously."""


def weight(batch: Batch) -> int:
    """Return what a batch takes of a queue's capacity, in bytes: its spans, and about what its verdicts take."""
    verdicts = [_VERDICT_SIZE + sum([len(group.spans) for group in verdict.groups]) for verdict in batch.verdicts]
    return batch.size + sum(verdicts)


def request_size(batch: Batch) -> int:
    """Return the bytes a batch makes as a request, or a little more: headers shared by neighbours count each time."""
    return sum([len(group[0]) + len(group[1]) + len(group[3]) + 2 * _FRAMING for group in batch.groups])


def cut(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in pieces that servers take; verdicts go with the first.

    A single span may exceed the bound: its size is for the caller to judge by `request_size`.
    """
    if request_size(batch) <= MOST_BYTES:
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
        if piece and size + more > MOST_BYTES:
            yield replace(batch, groups=piece, verdicts=verdicts)
            verdicts = ()
            piece, size = [], 0
            more = len(group.spans) + len(group.resource) + len(group.scope) + 2 * _FRAMING
        piece.append(group)
        size += more
        resource, scope = group.resource, group.scope
    yield replace(batch, groups=piece, verdicts=verdicts)


def without_first(batch: Batch, spans: int) -> Batch:
    """Return a batch without its first spans, so many; without its verdicts too if these are any."""
    if spans <= 0:
        return batch
    groups: list[Group] = []
    for group in batch.groups:
        if spans >= group.span_count:
            spans -= group.span_count
        elif spans:
            rest = split(group.spans)[spans:]
            groups.append(group._replace(spans=frame(rest), span_count=len(rest)))
            spans = 0
        else:
            groups.append(group)
    return replace(batch, groups=groups, verdicts=())


def _cut_group(group: Group) -> Iterator[Group]:
    """Yield a group whole, or in runs of its spans when a request could not hold it."""
    bound = MOST_BYTES - len(group.resource) - len(group.scope) - 2 * _FRAMING
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
