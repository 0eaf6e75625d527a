"""Traces that no policy kept rest here for a while, for they may yet turn out to be linked with one that is kept."""

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from podtrail.otlp import Group
from podtrail_processors.tail_sampling.departures import Resting
from podtrail_processors.tail_sampling.linked.web import Node

_NODE_BYTES = 1500
_KEY_BYTES = 300
_GROUP_BYTES = 100
_SLACK = 1024


class Grace:
    """Resting traces in the order in which they were decided. It knows how much they weigh and which arrived first."""

    def __init__(self) -> None:
        self.spans = 0
        self.bytes = 0
        """What they take, as estimated: their spans, and what is remembered of each."""
        self._order: deque[Node] = deque()
        self._arrivals: list[tuple[int, int, Node]] = []
        self._sequence = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def rest(self, node: Node, resting: Resting) -> None:
        """Let a trace rest, its joins known already."""
        trace = resting.trace
        node.content = resting
        node.size = _NODE_BYTES + _KEY_BYTES * len(node.keys) + sum([_weight(group) for group in resting.groups])
        self._count += 1
        self.spans += trace.span_count
        self.bytes += node.size
        self._order.append(node)
        self._sequence += 1
        heappush(self._arrivals, (trace.arrived, self._sequence, node))

    def join(self, node: Node, group: Group) -> None:
        """Add late spans to a resting trace."""
        assert node.content is not None, "it rests"
        if node.late is None:
            node.late = []
        node.late.append(group)
        node.content.trace.span_count += group.span_count
        weight = _weight(group) + _KEY_BYTES
        node.size += weight
        self.spans += group.span_count
        self.bytes += weight

    def take(self, node: Node) -> Resting:
        """Part with a resting trace, all its spans in it."""
        resting = node.content
        assert resting is not None, "it rests"
        node.content = None
        self._count -= 1
        self.spans -= resting.trace.span_count
        self.bytes -= node.size
        if node.late is not None:
            resting = resting._replace(groups=[*resting.groups, *node.late])
            node.late = None
        if len(self._arrivals) > 2 * self._count + _SLACK:
            self._arrivals = [entry for entry in self._arrivals if entry[2].content is not None]
            heapify(self._arrivals)
        return resting

    def take_over(self, other: "Grace") -> None:
        """Take all that rests with another, with its times."""
        for node in list(other):
            self.rest(node, other.take(node))
        other._order.clear()
        other._arrivals.clear()

    def oldest(self) -> Node | None:
        """Return the trace that has rested longest."""
        order = self._order
        while order and order[0].content is None:
            order.popleft()
        return order[0] if order else None

    def since(self) -> int | None:
        """Return when the first of them arrived."""
        arrivals = self._arrivals
        while arrivals and arrivals[0][2].content is None:
            heappop(arrivals)
        return arrivals[0][0] if arrivals else None

    def __iter__(self) -> Iterator[Node]:
        """Yield the traces, the one that has rested longest first."""
        return (node for node in self._order if node.content is not None)


def _weight(group: Group) -> int:
    return len(group.spans) + _GROUP_BYTES
