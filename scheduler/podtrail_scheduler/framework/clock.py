"""The scheduler's time, and what runs in it: the wall's and an event loop's, or those of a simulation that runs faster.

Coroutines of the scheduler and of plugins await only what is here and the client's requests, so that the same code
runs under asyncio and in virtual time.
"""

from collections.abc import Coroutine
from typing import Any, Protocol


class Signal(Protocol):
    """An event that is set once: a coroutine waits for it, anybody sets it."""

    def set(self) -> None:
        """Sets it: whoever waits goes on, and later waits return at once."""
        ...

    async def wait(self, timeout: int | None = None) -> bool:  # noqa: ASYNC109, virtual time has no asyncio.timeout
        """Waits until it is set, at most `timeout` nanoseconds; False when time was up first."""
        ...


class SchedulerClock(Protocol):
    """The current time, and background work in it."""

    def now(self) -> int:
        """The current time in unix nanoseconds."""
        ...

    async def sleep(self, duration: int) -> None:
        """Lets `duration` nanoseconds pass, and others run meanwhile."""
        ...

    def signal(self) -> Signal:
        """A new signal, not yet set."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Has `work` run in the background, from now on; it deals with its failures itself."""
        ...

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Told after each run of a plugin; a simulated clock moves on by what that costs, a real one has moved."""
        ...
