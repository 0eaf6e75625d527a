"""Undecided traces, by the time at which they are due and by their arrival."""

import heapq
from collections import deque
from collections.abc import Iterator

from podtrail_processors.tail_sampling.held import HeldTrace


class Waiting:
    """A queue in order of arrival, which is the order in which traces fall due but for those in the heap beside it.

    Nothing is searched for: a trace that was decided another way is passed over when its turn comes.
    """

    def __init__(self) -> None:
        self._arrivals: deque[HeldTrace] = deque()
        self.last_due = 0
        """No trace here falls due later."""
        self._out_of_turn: list[tuple[int, int, HeldTrace]] = []
        self._sequence = 0

    def add(self, trace: HeldTrace) -> None:
        """Have a trace wait for `trace.due`."""
        self._arrivals.append(trace)
        if trace.due < self.last_due:
            self._push(trace)
        else:
            self.last_due = trace.due

    def advance(self, trace: HeldTrace, due: int) -> None:
        """Have a waiting trace fall due at `due` if that is earlier."""
        if due < trace.due:
            trace.due = due
            self._push(trace)

    def _push(self, trace: HeldTrace) -> None:
        self._sequence += 1
        heapq.heappush(self._out_of_turn, (trace.due, self._sequence, trace))

    def oldest(self) -> HeldTrace | None:
        """Return the trace that arrived first."""
        arrivals = self._arrivals
        while arrivals and arrivals[0].state is not None:
            arrivals.popleft()
        return arrivals[0] if arrivals else None

    def next(self) -> HeldTrace | None:
        """Return the trace that falls due first."""
        oldest = self.oldest()
        heap = self._out_of_turn
        if heap:
            while heap and heap[0][2].state is not None:
                heapq.heappop(heap)
            if heap and oldest is not None and heap[0][0] <= oldest.due:
                return heap[0][2]
        return oldest

    def __iter__(self) -> Iterator[HeldTrace]:
        """Yield the traces in order of arrival; they may be decided meanwhile."""
        while (trace := self.oldest()) is not None:
            yield trace
            self._arrivals.popleft()
