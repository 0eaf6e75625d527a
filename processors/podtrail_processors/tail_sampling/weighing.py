"""Ticks: traces that fall due within one second are weighed against each other, where policies choose among them.

So does the Collector with its gate `usetracestate`: its budgets go to the traces of highest randomness of a tick.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from podtrail.config.types import SECOND
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.holding.due_queue import DueQueue
from podtrail_processors.tail_sampling.holding.held_trace import HeldTrace, TraceTable
from podtrail_processors.tail_sampling.judging.judge import Judge

TRACE_COST = 8
"""What deciding a trace costs beside its spans, in spans."""


class Weighing:
    """Shows traces that are about to be judged to the policies that weigh them; without such policies it does nothing.

    Times are pipeline time, Unix nanoseconds.
    """

    def __init__(self, judge: Judge, waiting: DueQueue, evidence: Callable[[HeldTrace, bytes, int], Evidence]) -> None:
        """Weigh what waits. `evidence`: what a trace says, of which these are the joined chunks, at a time."""
        self._judge = judge
        self._waiting = waiting
        self._evidence = evidence
        self._tick = SECOND if judge.by_tick else 1
        """Traces are decided at multiples of this."""
        self._unweighed: deque[HeldTrace] = deque()
        """What is left to be weighed of the tick that is begun."""
        self._weighed = 0
        """What falls due by then is weighed."""

    def last_tick(self, now: int) -> int:
        """Return when the last tick was: what fell due by then is decided."""
        return now // self._tick * self._tick

    def tick_of(self, due: int) -> int:
        """Return the tick at which a trace is decided that falls due at a time."""
        return -(-due // self._tick) * self._tick

    def weigh_by(self, due: int, now: int, limit: int) -> int:
        """Have what falls due by a tick weighed, about `limit` spans of it at once; return how many."""
        if not self._judge.by_tick or due <= self._weighed:
            return 0
        if not self._unweighed:
            self._unweighed.extend(trace for its, trace in self._waiting.dues() if its <= due)
        work, part = 0, []
        while self._unweighed and work < limit:
            part.append(trace := self._unweighed.popleft())
            work += trace.span_count + TRACE_COST
        self._weigh(part, now, settles=not self._unweighed)
        if not self._unweighed:
            self._weighed = due
        return work

    def weigh_alone(self, trace: HeldTrace, now: int) -> None:
        """Have a trace weighed that is decided before its time; the rest of a tick that is begun is weighed anew."""
        if self._judge.by_tick:
            self._unweighed.clear()
            self._weighed = 0
            self._weigh([trace], now)

    def remaining(self, now: int) -> Iterator[HeldTrace]:
        """Yield what is undecided in order of arrival; where traces are weighed, tick by tick."""
        if not self._judge.by_tick:
            yield from self._waiting
            return
        dues = sorted([(self.tick_of(due), trace) for due, trace in self._waiting.dues()], key=itemgetter(0))
        for tick, due in groupby(dues, itemgetter(0)):
            traces = [trace for _, trace in due]
            if tick > self._weighed:
                self._weigh(traces, now)
            yield from traces

    def saved(self, table: TraceTable) -> tuple[tuple[int, ...], int]:
        """Return what is left of the tick that is begun, and what is weighed."""
        return table.numbers([trace for trace in self._unweighed if trace.state is None]), self._weighed

    def restore(self, unweighed: Iterable[int], weighed: int, traces: Sequence[HeldTrace]) -> None:
        """Go on with the tick that was begun."""
        self._unweighed.extend([traces[at] for at in unweighed])
        self._weighed = weighed

    def _weigh(self, traces: Iterable[HeldTrace], now: int, *, settles: bool = True) -> None:
        """Show traces to the policies, and have them choose if these are all."""
        for trace in traces:
            if trace.state is None:
                self._judge.weigh(self._evidence(trace, b"".join(trace.chunks), now))
        if settles:
            self._judge.settle(now)
