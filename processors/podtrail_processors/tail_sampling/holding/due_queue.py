"""Undecided traces, by the time at which they are due and by their arrival."""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podtrail_processors.tail_sampling.holding.held_trace import HeldTrace, TraceTable


class SavedQueue(NamedTuple):
    """A queue in a saved state; traces by their numbers."""

    arrivals: tuple[int, ...]
    out_of_turn: tuple[tuple[int, int, int], ...]
    sequence: int
    last_due: int


class DueQueue:
    """A queue in order of arrival, which is the order in which traces fall due but for those in the heap beside it.

    Nothing is searched for, and nothing is moved when a span comes: a trace that was decided another way is passed over
    when its turn comes, one that is due when it was idle for so long is looked at then, and put back if it was not.
    """

    def __init__(self, idle: int = 0) -> None:
        """Have traces fall due when they were `idle` for so long (nanoseconds, 0: never for that), or when due."""
        self._arrivals: deque[HeldTrace] = deque()
        self.last_due = 0
        """No trace here falls due later."""
        self._idle = idle
        self._out_of_turn: list[tuple[int, int, HeldTrace]] = []
        self._sequence = 0

    def add(self, trace: HeldTrace) -> None:
        """Have a trace wait for `trace.due`."""
        self._arrivals.append(trace)
        if trace.due < self.last_due:
            self._push(trace, trace.due)
        else:
            self.last_due = trace.due
        if self._idle and (idle := trace.last + self._idle) < trace.due:
            self._push(trace, idle)

    def advance(self, trace: HeldTrace, due: int) -> None:
        """Have a waiting trace fall due at `due` if that is earlier."""
        if due < trace.due:
            trace.due = due
            self._push(trace, due)

    def _push(self, trace: HeldTrace, due: int) -> None:
        self._sequence += 1
        heapq.heappush(self._out_of_turn, (due, self._sequence, trace))

    def oldest(self) -> HeldTrace | None:
        """Return the trace that arrived first."""
        arrivals = self._arrivals
        while arrivals and arrivals[0].state is not None:
            arrivals.popleft()
        return arrivals[0] if arrivals else None

    def deadline(self) -> int | None:
        """Return when the next trace falls due."""
        oldest = self.oldest()
        if oldest is None:
            return None
        first = self._first_out_of_turn() if self._out_of_turn else None
        return oldest.due if first is None else min(first[0], oldest.due)

    def due_by(self, now: int) -> HeldTrace | None:
        """Return the trace that falls due first, if that is not after `now`."""
        arrivals = self._arrivals
        while arrivals:
            oldest = arrivals[0]
            if oldest.state is None:
                break
            arrivals.popleft()
        else:
            return None
        if self._out_of_turn:
            first = self._first_out_of_turn()
            if first is not None and first[0] <= oldest.due:
                return first[2] if first[0] <= now else None
        return oldest if oldest.due <= now else None

    def _first_out_of_turn(self) -> tuple[int, int, HeldTrace] | None:
        """Return the first in the heap that is still there rightly; the rest is taken out or put where it belongs."""
        heap = self._out_of_turn
        while heap:
            due, sequence, trace = heap[0]
            if trace.state is not None:
                heapq.heappop(heap)
                continue
            rightly = self._due(trace)
            if due >= rightly:
                return heap[0]
            heapq.heapreplace(heap, (rightly, sequence, trace))
        return None

    def dues(self) -> list[tuple[int, HeldTrace]]:
        """Return when each trace falls due as things stand, and which it is, in order of arrival."""
        return [(self._due(trace), trace) for trace in self._arrivals if trace.state is None]

    def _due(self, trace: HeldTrace) -> int:
        return min(trace.due, trace.last + self._idle) if self._idle else trace.due

    def take_over(self, other: "DueQueue") -> None:
        """Take all that waits in another queue, each for its time."""
        self._arrivals, other._arrivals = other._arrivals, deque()
        self._out_of_turn, other._out_of_turn = other._out_of_turn, []
        self._sequence, self.last_due = other._sequence, other.last_due

    def saved(self, table: TraceTable) -> "SavedQueue":
        """Return what waits."""
        heap = [(due, number, table.number(trace)) for due, number, trace in self._out_of_turn if trace.state is None]
        arrivals = table.numbers([trace for trace in self._arrivals if trace.state is None])
        return SavedQueue(arrivals, tuple(heap), self._sequence, self.last_due)

    def restore(self, saved: "SavedQueue", traces: Sequence[HeldTrace]) -> None:
        """Have wait what waited."""
        self._arrivals = deque([traces[at] for at in saved.arrivals])
        self._out_of_turn = [(due, number, traces[at]) for due, number, at in saved.out_of_turn]
        heapq.heapify(self._out_of_turn)
        self._sequence, self.last_due = saved.sequence, saved.last_due

    def __iter__(self) -> Iterator[HeldTrace]:
        """Yield the traces in order of arrival; they may be decided meanwhile."""
        while (trace := self.oldest()) is not None:
            yield trace
            self._arrivals.popleft()
