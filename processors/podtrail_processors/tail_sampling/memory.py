"""The traces in memory, decided or not, in order of their arrival."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podtrail_processors.tail_sampling.held import FORGOTTEN, HeldTrace
from podtrail_processors.tail_sampling.waiting import Waiting


class Estate(NamedTuple):
    """What a memory leaves behind."""

    traces: Sequence[HeldTrace]
    stragglers: Sequence[tuple[int, int]]
    newest: int


class Memory:
    """Finds traces by their id, knows the oldest, and how much the undecided ones weigh."""

    def __init__(self) -> None:
        self.traces: dict[bytes, HeldTrace] = {}
        self.waiting = Waiting()
        self.spans = 0
        """Spans of undecided traces."""
        self.bytes = 0
        """The bytes of these spans."""
        self._order: deque[HeldTrace] = deque()
        self._newest = 0
        self._stragglers: deque[tuple[int, int]] = deque()

    def note_arrival(self, arrived: int, due: int) -> None:
        """Take note of spans that arrived at `arrived`, of traces that fall due by `due` or with those in memory.

        Arrivals come in order but for stragglers, which are remembered until they must have left.
        """
        if arrived >= self._newest:
            self._newest = arrived
            return
        stragglers = self._stragglers
        while stragglers and stragglers[-1][0] >= arrived:
            stragglers.pop()
        stragglers.append((arrived, max(due, self.waiting.last_due)))

    def held_since(self) -> int | None:
        """Return the arrival of the oldest undecided span (a little earlier if there were stragglers)."""
        oldest = self.waiting.oldest()
        if oldest is None:
            self._stragglers.clear()
            return None
        stragglers = self._stragglers
        while stragglers and stragglers[0][1] < oldest.due:
            stragglers.popleft()
        return min(stragglers[0][0], oldest.arrived) if stragglers else oldest.arrived

    def open(self, trace: HeldTrace) -> HeldTrace:
        """Take a new trace in, to wait for `trace.due`."""
        self.traces[trace.trace_id] = trace
        self._order.append(trace)
        self.waiting.add(trace)
        return trace

    def release(self) -> Estate:
        """Part with everything."""
        estate = Estate(list(self.traces.values()), list(self._stragglers), self._newest)
        self.traces, self.waiting = {}, Waiting()
        self.spans = self.bytes = 0
        self._order.clear()
        self._stragglers.clear()
        return estate

    def take_over(self, other: "Memory") -> None:
        """Take all that another memory has, as it is."""
        self.traces, other.traces = other.traces, {}
        self.waiting, other.waiting = other.waiting, Waiting()
        self.spans, self.bytes, other.spans, other.bytes = other.spans, other.bytes, 0, 0
        self._order, other._order = other._order, deque()
        self._newest = other._newest
        self._stragglers, other._stragglers = other._stragglers, deque()

    def inherit(self, estates: Sequence[Estate], traces: Iterable[HeldTrace]) -> None:
        """Take traces in that other memories have parted with."""
        for trace in sorted(traces, key=lambda trace: trace.arrived):
            self.open(trace)
            if trace.state is None:
                self.spans += trace.span_count
                self.bytes += sum(map(len, trace.chunks))
        self._newest = max(estate.newest for estate in estates)
        self._stragglers = deque(sorted(straggler for estate in estates for straggler in estate.stragglers))

    def oldest(self) -> HeldTrace:
        """Return the trace that came in first, decided or not. IndexError when there is none."""
        return self._order[0]

    def let_go(self, trace: HeldTrace, size: int) -> None:
        """Count an undecided trace's spans, which have `size` bytes, as gone."""
        self.spans -= trace.span_count
        self.bytes -= size

    def forget(self, trace: HeldTrace) -> None:
        """Forget a trace."""
        del self.traces[trace.trace_id]
        trace.close(FORGOTTEN)
        order = self._order
        while order and order[0].state is FORGOTTEN:
            order.popleft()
