"""Virtual time: what is due when, and where whoever is running now has got to."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from podtrail_scheduler.durations import MILLISECOND

Action = Callable[[], None]

# What a run of a plugin costs in a scheduler of this kind: so much, and so much for each node it looks at.
CALL = MILLISECOND // 50
NODE = MILLISECOND // 2000
FREE_POINTS = frozenset(("bind", "permit", "reserve", "postBind", "unreserve"))


class Timeline:
    """The clock of the simulation. Things that happen at the same time happen in the order in which they were planned.

    Whoever is running may move on (`sleep`, `charge`); when it is done, time is set back to what is due next. So
    several binding cycles take their time side by side.
    """

    def __init__(self, start: int, seed: str) -> None:
        self._now = start
        self._order = count()
        self._due: list[tuple[int, int, Action]] = []
        self._random = Random(seed)  # noqa: S311, reproducible on purpose

    def now(self) -> int:
        """Unix nanoseconds of whoever is running."""
        return self._now

    def sleep(self, duration: int) -> None:
        """Whoever is running waits."""
        self._now += duration

    def charge(self, plugin: str, point: str, calls: int) -> None:  # noqa: ARG002, all plugins cost alike
        """Whoever is running has used the CPU, give or take a quarter."""
        cost = CALL + NODE * calls if point not in FREE_POINTS else CALL
        self._now += int(cost * (0.75 + self._random.random() / 2))

    def at(self, time: int, action: Action) -> None:
        """Plans `action` for `time`, not before now."""
        heapq.heappush(self._due, (max(time, self._now), next(self._order), action))

    def after(self, duration: int, action: Action) -> None:
        """Plans `action` for when `duration` is over."""
        self.at(self._now + duration, action)

    def next_time(self) -> int | None:
        """When something is due next."""
        return self._due[0][0] if self._due else None

    def step(self) -> None:
        """Goes to what is due next and does it; afterwards it is as late as it was due, whatever that took."""
        self._now, _, action = heapq.heappop(self._due)
        self.aside(action)

    def aside(self, action: Action) -> None:
        """Does `action`, which may take its time, without time passing for anybody else."""
        began = self._now
        action()
        self._now = began
