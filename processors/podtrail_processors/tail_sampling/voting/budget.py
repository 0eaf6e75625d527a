"""A policy with a budget: the first come, or those of highest randomness of all that fall due together."""

from abc import abstractmethod
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from podtrail.otlp import Decision
from podtrail.state import StateShape, known_version
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.probability import ALWAYS, NEVER, randomness_of
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator
from podtrail_processors.tail_sampling.voting.limiter import Limiter


class Budgeted(Evaluator):
    """Says yes as long as its bucket has the tokens that a trace costs.

    It charges every trace it says yes to, also one that another policy keeps anyway: so did the Collector's.
    """

    stateful = True
    by_tick = True

    def __init__(self, per_second: int, burst: int, unit: str) -> None:
        self._rate = f"{per_second} {unit} a second"
        self.reason = f"it is within {self._rate}"
        self._burst = burst
        self._limiter = Limiter(per_second, burst)
        self._settled = False
        self._weighed: dict[bytes, tuple[int, int]] = {}
        """Randomness and cost of what falls due together, by trace id: a trace may be shown again."""

    @abstractmethod
    def cost(self, trace: Evidence) -> int:
        """Return how many tokens a trace takes."""

    def vote(self, trace: Evidence) -> Decision:
        """Compare the randomness with the threshold where that is settled, or take the tokens."""
        cost = self.cost(trace)
        if self._settled:
            yes = cost <= self._burst and self.threshold <= _randomness(trace)
        else:
            yes = self._limiter.take(cost, trace.now)
        return "sampled" if yes else "not_sampled"

    def weigh(self, trace: Evidence) -> None:
        """Take note of a trace, unless it can never fit: it is not to stand in the way of others."""
        if (cost := self.cost(trace)) <= self._burst:
            self._weighed[trace.trace_id] = _randomness(trace), cost

    def settle(self, now: int) -> None:
        """Spend the tokens from the highest randomness downwards; the first that does not fit sets the threshold.

        No threshold tells traces of equal randomness apart: they fit together or not at all.
        """
        weighed, self._weighed = sorted(self._weighed.values(), reverse=True), {}
        room, spent = self._limiter.level(now), 0
        self.threshold, self._settled = ALWAYS, True
        for randomness, tied in groupby(weighed, itemgetter(0)):
            cost = sum(cost for _, cost in tied)
            if spent + cost > room:
                self.threshold = randomness + 1 if spent else NEVER
                break
            spent += cost
        self._limiter.take(spent, now)

    def save_state(self) -> Any:
        """Return what is left, and what was weighed."""
        return _SavedBudget(*self._limiter.saved(), self._settled, self.threshold, tuple(self._weighed.items()))

    def restore_state(self, version: int, state: Any) -> None:
        """Go on from what was left."""
        known_version(version, 1)
        saved = _SHAPE.read(state)
        self._limiter.restore(saved.level, saved.filled_at)
        self._settled, self.threshold, self._weighed = saved.settled, saved.threshold, dict(saved.weighed)

    def take_over(self, predecessor: Evaluator) -> None:
        """Go on from what is left of the predecessor's bucket."""
        assert isinstance(predecessor, Budgeted)
        self._limiter.take_over(predecessor._limiter)


class _SavedBudget(NamedTuple):
    level: int
    filled_at: int | None
    settled: bool
    threshold: int
    weighed: tuple[tuple[bytes, tuple[int, int]], ...]


_SHAPE: Final = StateShape[_SavedBudget](_SavedBudget)


def _randomness(trace: Evidence) -> int:
    told = trace.randomness
    return randomness_of(trace.trace_id) if told is None else told
