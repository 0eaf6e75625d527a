"""How long deciding takes, as the Collector tells it; nothing in a replay, where no time passes.

A clock read before and after every vote would cost more than many a vote. So of `EVERY` votes of a policy or more one
is timed, which then stands for them all.
"""

from collections.abc import Callable, Sequence
from functools import partial

from podtrail.component import Counter, Histogram
from podtrail.config.types import MILLISECOND, SECOND
from podtrail.otlp import Decision
from podtrail_processors.evidence.evidence import Evidence

EVERY = 64
_MICROSECOND = 1_000

Ask = Callable[[Evidence], Decision]


class PolicyTimes:
    """The time that each policy takes for its votes."""

    def __init__(
        self, votes: Sequence[Ask], labels: Sequence[str], counted: Counter, stopwatch: Callable[[], int]
    ) -> None:
        """`counted` sums up microseconds by these labels."""
        self.asks: list[Ask] = list(votes)
        """What to ask, one by one in a loop over this very list: a timed ask puts the plain one in its place."""
        self._votes = votes
        self._labels = labels
        self._counted = counted
        self._stopwatch = stopwatch
        self.runs = bool(stopwatch())
        """Whether there is a clock."""
        self._took = [0] * len(votes)
        self._uncounted = [0] * len(votes)
        if self.runs:
            self._time_next()

    def settle(self, asked: Sequence[int]) -> None:
        """Count the time of so many votes of each policy, and have the next one timed."""
        for at, times in enumerate(asked):
            microseconds, self._uncounted[at] = divmod(self._uncounted[at] + times * self._took[at], _MICROSECOND)
            if microseconds:
                self._counted.add(microseconds, self._labels[at])
        self._time_next()

    def _time_next(self) -> None:
        self.asks[:] = [partial(self._timed, at) for at in range(len(self._votes))]

    def _timed(self, at: int, trace: Evidence) -> Decision:
        vote = self.asks[at] = self._votes[at]
        began = self._stopwatch()
        try:
            return vote(trace)
        finally:
            self._took[at] = self._stopwatch() - began


class DecisionTimer:
    """The time that the decisions due within a second take together: the Collector's timer runs once a second."""

    def __init__(self, latency: Histogram, stopwatch: Callable[[], int]) -> None:
        """`latency` takes milliseconds."""
        self._latency = latency
        self._stopwatch = stopwatch
        self._second = self._took = 0

    def begin(self) -> int:
        """Return when some decisions begin, for `end`."""
        return self._stopwatch()

    def end(self, began: int, now: int) -> None:
        """Add what has passed since `began` to the second of pipeline time that `now` lies in."""
        if not began:
            return
        second = now // SECOND
        if second != self._second:
            if self._second:
                self._latency.observe(self._took // MILLISECOND)
            self._second, self._took = second, 0
        self._took += self._stopwatch() - began
