"""Calls the plugins of others in place and adds what they really take to simulated time."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import Any

from podtrail_scheduler.framework.aside import Answer, InPlace, Raised

from .timeline import Timeline


class MeasuredInPlace(InPlace):
    """A plugin that is slow holds up in a simulation what it would hold up on a cluster."""

    def __init__(self, timeline: Timeline, stopwatch: Callable[[], int]) -> None:
        self._timeline = timeline
        self._stopwatch = stopwatch

    @contextmanager
    def outside(self, plugin: str, point: str) -> Iterator[None]:  # noqa: ARG002
        """The scheduling cycle waits, and whatever waits for that."""
        began = self._stopwatch()
        try:
            yield
        finally:
            self._timeline.spend(self._stopwatch() - began)

    async def call(
        self, pod: str, plugin: str, point: str, function: Callable[..., Awaitable[Answer] | Answer], *args: Any
    ) -> Answer | Raised:
        """The attempt waits, the others get on. What a coroutine function takes is only what it awaits."""
        began = self._stopwatch()
        answer = await super().call(pod, plugin, point, function, *args)
        if not iscoroutinefunction(function):
            await self._timeline.sleep(self._stopwatch() - began)
        return answer
