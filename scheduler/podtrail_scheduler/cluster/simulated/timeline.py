"""Virtual time: what is due when, and the time that the running coroutine has got to."""

import heapq
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from itertools import count
from random import Random
from types import coroutine
from typing import Any

from podtrail_scheduler.objects.durations import MILLISECOND

Action = Callable[[], None]
Resume = Callable[[Any], None]
Arrange = Callable[[Resume], None]
"""Sees to it that a coroutine goes on, some time."""

# What a run of a plugin costs in a scheduler of this kind: so much, and so much for each node it looks at.
CALL = MILLISECOND // 50
NODE = MILLISECOND // 2000
FREE_POINTS = frozenset(("bind", "permit", "reserve", "postBind", "unreserve"))


@coroutine
def _suspend(arrange: Arrange) -> Generator[Arrange, Any, Any]:
    return (yield arrange)


class Timeline:
    """The clock of the simulation. Things that happen at the same time happen in the order in which they were planned.

    Whoever is running may move on (`spend`, `charge`); when it is done, time is set back to what is due next. So
    several coroutines take their time side by side.
    """

    def __init__(self, start: int, seed: str) -> None:
        self._now = start
        self._order = count()
        self._due: list[tuple[int, int, Action]] = []
        self._random = Random(seed)  # noqa: S311, reproducible on purpose
        self._running: dict[Coroutine[Any, Any, None], Context] = {}

    def now(self) -> int:
        """The virtual time of the running coroutine, in unix nanoseconds."""
        return self._now

    def spend(self, duration: int) -> None:
        """Has the running coroutine be busy for `duration` nanoseconds: nobody it holds up gets on meanwhile."""
        self._now += duration

    async def sleep(self, duration: int) -> None:
        """Has the coroutine go on `duration` nanoseconds later."""
        time = self._now + max(duration, 0)
        await _suspend(lambda resume: self.at(time, lambda: resume(None)))

    def signal(self) -> "TimelineSignal":
        """A new signal, not yet set."""
        return TimelineSignal(self)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins `work` at the time that the running coroutine has got to."""
        context = self._running[work] = copy_context()
        self.at(self._now, lambda: self._advance(work, context, None))

    def charge(self, plugin: str, point: str, calls: int) -> None:  # noqa: ARG002, all plugins cost alike
        """Has the running coroutine take what the plugin's calls cost, give or take a quarter."""
        cost = CALL + NODE * calls if point not in FREE_POINTS else CALL
        self._now += int(cost * (0.75 + self._random.random() / 2))

    def at(self, time: int, action: Action) -> None:
        """Plans `action` for `time` (unix nanoseconds), not before now."""
        heapq.heappush(self._due, (max(time, self._now), next(self._order), action))

    def after(self, duration: int, action: Action) -> None:
        """Plans `action` for `duration` nanoseconds from now."""
        self.at(self._now + duration, action)

    def next_time(self) -> int | None:
        """When the next planned action is due (unix nanoseconds), None when nothing is planned."""
        return self._due[0][0] if self._due else None

    def step(self) -> None:
        """Goes to what is due next and does it; afterwards it is as late as it was due, whatever that took."""
        self._now, _, action = heapq.heappop(self._due)
        began = self._now
        action()
        self._now = began

    def close(self) -> None:
        """Ends the coroutines that are under way."""
        self._due.clear()
        for work, context in [*self._running.items()]:
            context.run(work.close)
        self._running.clear()

    def _advance(self, work: Coroutine[Any, Any, None], context: Context, value: object) -> None:
        try:
            arrange: Arrange = context.run(work.send, value)
        except StopIteration:
            self._running.pop(work, None)
        else:
            arrange(lambda answer: self._advance(work, context, answer))


class TimelineSignal:
    """A `Signal` in virtual time."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._said = False
        self._waiting: list[Resume] = []

    def set(self) -> None:
        """Sets the signal and resumes those that wait."""
        self._said = True
        for resume in self._waiting:
            resume(True)
        self._waiting.clear()

    async def wait(self, timeout: int | None = None) -> bool:  # noqa: ASYNC109, virtual time has no asyncio.timeout
        """False when `timeout` nanoseconds were over first."""
        if self._said:
            return True
        said: bool = await _suspend(lambda resume: self._wait(resume, timeout))
        return said

    def _wait(self, resume: Resume, timeout: int | None) -> None:
        timeline, answered = self._timeline, False

        def once(answer: bool) -> None:
            nonlocal answered
            if not answered:
                answered = True
                timeline.at(timeline.now(), lambda: resume(answer))

        self._waiting.append(once)
        if timeout is not None:
            timeline.after(max(timeout, 0), lambda: once(False))
