"""Traces that no policy kept rest here for a while, for they may yet turn out to be linked with one that is kept."""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, overload

from podtrail.otlp import Group
from podtrail_processors.evidence.evidence import Header
from podtrail_processors.tail_sampling.holding.held_trace import HeldTrace, TraceTable
from podtrail_processors.tail_sampling.judging.judge import Judge, Judgement
from podtrail_processors.tail_sampling.judging.shadow import SavedJudgement
from podtrail_processors.tail_sampling.leaving.linked.web import LinkedTrace, WebTable

_NODE_BYTES = 1500
_KEY_BYTES = 300
_GROUP_BYTES = 100
_SLACK = 1024


_Pieces = tuple[bytes, bytes, bytes, tuple[bytes, ...], int]
"""A group whose spans are not joined."""


class SavedGroups(NamedTuple):
    """A resting trace in a saved state; node and trace by their numbers."""

    node: int
    trace: int
    judgement: SavedJudgement
    groups: tuple[_Pieces, ...]
    at: int | None
    size: int


class SavedGrace(NamedTuple):
    """What rests, in a saved state."""

    resting: tuple[SavedGroups, ...]
    latest: int
    stragglers: tuple[tuple[int, int, int], ...]
    sequence: int


class Grace:
    """Resting traces in the order in which they were decided. It knows how much they weigh and which arrived first."""

    def __init__(self) -> None:
        self.spans = 0
        self.bytes = 0
        """What they take, as estimated: their spans, and what is remembered of each."""
        self._order: deque[LinkedTrace] = deque()
        self._count = 0
        self._latest = 0
        self._stragglers: list[tuple[int, int, LinkedTrace]] = []
        """Those that arrived before one that was decided earlier, the first of them on top."""
        self._sequence = 0

    def __len__(self) -> int:
        return self._count

    def rest(
        self,
        node: LinkedTrace,
        trace: HeldTrace,
        judgement: Judgement,
        groups: Sequence[Group],
        at: int | None,
        size: int,
    ) -> None:
        """Let a trace rest whose spans have this size, its joins known already; `at`: when it was decided.

        While the trace has its chunks these rest rather than the groups made of them, a copy that nobody may ask for.
        """
        node.trace = trace
        node.judgement = judgement
        chunks = trace.chunks
        if chunks and len(groups) == 1:
            groups = Pieces(trace.header, node.trace_id, chunks, trace.span_count)
        node.groups = groups
        node.at = at
        node.size = size = size + _NODE_BYTES + _KEY_BYTES * len(node.keys) + _GROUP_BYTES * len(groups)
        self._count += 1
        self.spans += trace.span_count
        self.bytes += size
        self._order.append(node)
        arrived = trace.arrived
        if arrived >= self._latest:
            self._latest = arrived
        else:
            self._sequence += 1
            heappush(self._stragglers, (arrived, self._sequence, node))

    def join(self, node: LinkedTrace, group: Group) -> None:
        """Add late spans to a resting trace."""
        assert node.trace is not None, "it rests"
        node.groups = [*node.groups, group]
        node.trace.span_count += group.span_count
        weight = len(group.spans) + _GROUP_BYTES + _KEY_BYTES
        node.size += weight
        self.spans += group.span_count
        self.bytes += weight

    def take(self, node: LinkedTrace) -> HeldTrace:
        """Part with a resting trace."""
        trace = node.trace
        assert trace is not None, "it rests"
        node.trace = None
        self._count -= 1
        self.spans -= trace.span_count
        self.bytes -= node.size
        return trace

    def oldest(self) -> LinkedTrace | None:
        """Return the trace that has rested longest."""
        order = self._order
        while order:
            if order[0].trace is not None:
                return order[0]
            order.popleft()
        return None

    def due(self, now: int) -> Iterator[LinkedTrace]:
        """Yield the traces whose time is over, the one that has rested longest first; whoever asks takes them."""
        order = self._order
        while order and ((node := order[0]).until <= now or node.trace is None):
            if node.trace is not None:
                yield node
            order.popleft()

    def since(self) -> int | None:
        """Return when the first of them arrived."""
        oldest = self.oldest()
        if oldest is None:
            self._stragglers.clear()
            return None
        stragglers = self._stragglers
        if len(stragglers) > 2 * self._count + _SLACK:
            stragglers = self._stragglers = [entry for entry in stragglers if entry[2].trace is not None]
            heapify(stragglers)
        while stragglers and stragglers[0][2].trace is None:
            heappop(stragglers)
        assert oldest.trace is not None, "it rests"
        return min(stragglers[0][0], oldest.trace.arrived) if stragglers else oldest.trace.arrived

    def saved(self, nodes: WebTable, table: TraceTable, judge: Judge) -> "SavedGrace":
        """Return what rests. `judge`: the present one."""
        resting = [
            SavedGroups(
                *(nodes.number(node), table.number(node.trace), SavedJudgement.of(node.judgement, judge)),
                *(_pieces(node.groups), node.at, node.size),
            )
            for node in self._order
            if node.trace is not None
        ]
        heap = [(arrived, at, nodes.number(node)) for arrived, at, node in self._stragglers if node.trace is not None]
        return SavedGrace(tuple(resting), self._latest, tuple(heap), self._sequence)

    def restore(
        self, saved: "SavedGrace", nodes: Sequence[LinkedTrace], traces: Sequence[HeldTrace], judge: Judge
    ) -> None:
        """Have rest what rested."""
        for one in saved.resting:
            node = nodes[one.node]
            node.trace, node.judgement, node.at, node.size = (
                *(traces[one.trace], one.judgement.restored(judge)),
                *(one.at, one.size),
            )
            node.groups = [
                Group(resource, scope, trace_id, b"".join(pieces), spans)
                for resource, scope, trace_id, pieces, spans in one.groups
            ]
            self._order.append(node)
            self._count += 1
            self.spans += node.trace.span_count
            self.bytes += node.size
        self._latest, self._sequence = saved.latest, saved.sequence
        self._stragglers = [(arrived, at, nodes[number]) for arrived, at, number in saved.stragglers]
        heapify(self._stragglers)

    def take_over(self, other: "Grace") -> None:
        """Take all that rests with another, with its times."""
        for node in list(other):
            trace = other.take(node)
            self.rest(node, trace, node.judgement, node.groups, node.at, sum(len(group.spans) for group in node.groups))
        other._order.clear()

    def __iter__(self) -> Iterator[LinkedTrace]:
        """Yield the traces, the one that has rested longest first."""
        return (node for node in self._order if node.trace is not None)


class Pieces(Sequence[Group]):
    """Spans under one header: one group, put together when somebody looks at it, which of most traces nobody does."""

    __slots__ = ("_groups", "_header", "_pieces", "_span_count", "_trace_id")

    def __init__(self, header: Header, trace_id: bytes, pieces: Sequence[bytes], span_count: int) -> None:
        self._header = header
        self._trace_id = trace_id
        self._pieces = pieces
        self._span_count = span_count
        self._groups: tuple[Group, ...] = ()

    def saved(self) -> _Pieces:
        """Return the group, its spans not joined unless they are already."""
        resource, scope = self._header
        pieces = (self._groups[0].spans,) if self._groups else tuple(self._pieces)
        return resource, scope, self._trace_id, pieces, self._span_count

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, at: int) -> Group: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Group]: ...
    def __getitem__(self, at: int | slice) -> Group | Sequence[Group]:
        if not self._groups:
            resource, scope = self._header
            self._groups = (Group(resource, scope, self._trace_id, b"".join(self._pieces), self._span_count),)
            self._pieces = ()
        return self._groups[at]

    def __iter__(self) -> Iterator[Group]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == tuple(other)

    __hash__ = None  # type: ignore[assignment]


def _pieces(groups: Sequence[Group]) -> tuple[_Pieces, ...]:
    if isinstance(groups, Pieces):
        return (groups.saved(),)
    return tuple([(group.resource, group.scope, group.trace_id, (group.spans,), group.span_count) for group in groups])
