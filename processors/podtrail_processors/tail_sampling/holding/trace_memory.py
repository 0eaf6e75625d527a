"""The traces in memory, decided or not, in order of their arrival."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podtrail_processors.evidence.evidence import Header
from podtrail_processors.tail_sampling.holding.due_queue import DueQueue, SavedQueue
from podtrail_processors.tail_sampling.holding.held_trace import FORGOTTEN, TURN_WEIGHT, HeldTrace, TraceTable

_MOST_HEADERS = 4096
_MOST_BYTES = 2**22


class MemoryContents(NamedTuple):
    """What a memory leaves behind."""

    traces: Sequence[HeldTrace]
    stragglers: Sequence[tuple[int, int]]
    newest: int


class SavedMemory(NamedTuple):
    """A memory in a saved state; traces by their numbers."""

    traces: tuple[int, ...]
    waiting: SavedQueue
    newest: int
    stragglers: tuple[tuple[int, int], ...]


class TraceMemory:
    """Finds traces by their id, knows the oldest, and how much the undecided ones weigh."""

    def __init__(self, *, idle: int = 0, weighs_headers: bool = False) -> None:
        self.traces: dict[bytes, HeldTrace] = {}
        self.waiting = DueQueue(idle)
        self.headers = Headers()
        self.spans = 0
        """Spans of undecided traces."""
        self.bytes = 0
        """About what undecided traces take in memory; with their headers if that was asked for."""
        self._weighs_headers = weighs_headers
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
        self.bytes += trace.weight
        if self._weighs_headers:
            self.bytes += self.headers.hold(trace.header)
        return trace

    def turn(self, trace: HeldTrace, header: Header) -> None:
        """Put what is added to a trace from here on under another header."""
        if self._weighs_headers:
            self.bytes += self.headers.hold(header)
        trace.turn_to(header)
        self.bytes += TURN_WEIGHT

    def release(self) -> MemoryContents:
        """Part with everything."""
        part = MemoryContents(list(self.traces.values()), list(self._stragglers), self._newest)
        self.traces = {}
        self.waiting.take_over(DueQueue())
        self._order.clear()
        self._stragglers.clear()
        self._weigh()
        return part

    def take_over(self, other: "TraceMemory") -> None:
        """Take all that another memory has, as it is."""
        self.traces, other.traces = other.traces, {}
        self.waiting.take_over(other.waiting)
        self._order, other._order = other._order, deque()
        self._newest = other._newest
        self._stragglers, other._stragglers = other._stragglers, deque()
        self._weigh()
        other._weigh()

    def inherit(self, contents: Sequence[MemoryContents], traces: Iterable[HeldTrace]) -> None:
        """Take traces in that other memories have parted with."""
        for trace in sorted(traces, key=lambda trace: trace.arrived):
            self.open(trace)
        self._newest = max(part.newest for part in contents)
        self._stragglers = deque(sorted(straggler for part in contents for straggler in part.stragglers))
        self._weigh()

    def saved(self, table: TraceTable) -> "SavedMemory":
        """Return what is in memory."""
        traces = table.numbers(self.traces.values())
        return SavedMemory(traces, self.waiting.saved(table), self._newest, tuple(self._stragglers))

    def restore(self, saved: "SavedMemory", traces: Sequence[HeldTrace]) -> None:
        """Have in memory what was; `traces` are all that there are, by their numbers."""
        self.traces = {traces[at].trace_id: traces[at] for at in saved.traces}
        self._order = deque(self.traces.values())
        self.waiting.restore(saved.waiting, traces)
        self._newest, self._stragglers = saved.newest, deque(saved.stragglers)
        self._weigh()

    def _weigh(self) -> None:
        """Sum up from the beginning what is held."""
        undecided = [trace for trace in self.traces.values() if trace.state is None]
        self.spans = sum(trace.span_count for trace in undecided)
        self.bytes = sum(trace.weight for trace in undecided)
        self.headers.let_go_of_all()
        if self._weighs_headers:
            self.bytes += sum(self.headers.hold(header) for trace in undecided for header in trace.headers())

    def oldest(self) -> HeldTrace:
        """Return the trace that came in first, decided or not.

        Raises:
            IndexError: there is none.
        """
        return self._order[0]

    def let_go(self, trace: HeldTrace) -> None:
        """Count an undecided trace as gone. It is still there; ask before it is closed."""
        self.spans -= trace.span_count
        self.bytes -= trace.weight
        if self._weighs_headers:
            for header in trace.headers():
                self.bytes -= self.headers.let_go(header)

    def forget(self, trace: HeldTrace) -> None:
        """Forget a trace."""
        del self.traces[trace.trace_id]
        trace.close(FORGOTTEN)
        order = self._order
        while order and order[0].state is FORGOTTEN:
            order.popleft()


class Headers:
    """Makes equal headers one object, so that a million traces of one process share one."""

    def __init__(self) -> None:
        self._known: dict[Header, Header] = {}
        self._known_bytes = 0
        self._holders: dict[Header, int] = {}

    def intern(self, resource: bytes, scope: bytes) -> Header:
        """Return the one header of this content."""
        header = Header(resource, scope)
        known = self._known.get(header)
        if known is not None:
            return known
        if len(self._known) >= _MOST_HEADERS or self._known_bytes > _MOST_BYTES:
            self._known.clear()
            self._known_bytes = 0
        self._known_bytes += len(resource) + len(scope)
        self._known[header] = header
        return header

    def hold(self, header: Header) -> int:
        """Note that something more is held under a header; return how many bytes that adds."""
        holders = self._holders.get(header, 0)
        self._holders[header] = holders + 1
        return 0 if holders else len(header.resource) + len(header.scope)

    def let_go(self, header: Header) -> int:
        """Note that something less is; return how many bytes that frees."""
        holders = self._holders[header]
        if holders > 1:
            self._holders[header] = holders - 1
            return 0
        del self._holders[header]
        return len(header.resource) + len(header.scope)

    def let_go_of_all(self) -> None:
        """Note that nothing is held any more."""
        self._holders.clear()
