"""How long attempts take: quantiles in bounded memory, at most 1 % too short."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from podtrail.otlp import Group, attempts_in

_STEP: Final = math.log(1.01)


def step_of(duration: int) -> int:
    """Return in which step of 1 % a length of time in nanoseconds falls."""
    return math.ceil(math.log(duration) / _STEP) if duration > 1 else 0


def end_of(step: int) -> int:
    """Return the longest time in a step, nanoseconds."""
    return math.ceil(math.exp(step * _STEP))


class Durations:
    """Counts the successful attempts of a recording by their length."""

    def __init__(self) -> None:
        """Start with none."""
        self._steps: Counter[int] = Counter()

    def came(self, groups: Iterable[Group]) -> None:
        """Count the attempts among groups."""
        for group in groups:
            for attempt in attempts_in(group.spans):
                if not attempt.failed and attempt.end > attempt.start:
                    self._steps[step_of(attempt.end - attempt.start)] += 1

    def quantile(self, share: float) -> int:
        """Return a time in nanoseconds beyond which attempts are at this quantile or slower; 1 s when there is none."""
        rank = math.ceil(share * self._steps.total())
        for step, count in sorted(self._steps.items()):
            rank -= count
            if rank <= 0:
                return end_of(step - 1)
        return 1_000_000_000
