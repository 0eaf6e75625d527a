"""The scheduler's time, and what runs in it: the wall's and an event loop's, or those of a simulation that runs faster.

Coroutines of the scheduler and of plugins await only what is here and the client's requests, so that the same code
runs under asyncio and in virtual time.
"""

from collections.abc import Coroutine
from typing import Any, Protocol


class Signal(Protocol):
    """Something that one coroutine may wait for and others say once."""

    def set(self) -> None:
        """Says it: who waits goes on, who comes later does not wait."""
        ...

    async def wait(self, timeout: int | None = None) -> bool:  # noqa: ASYNC109, virtual time has no asyncio.timeout
        """Waits until it has been said, at most `timeout` nanoseconds; False when time was up first."""
        ...


class SchedulerClock(Protocol):
    """Where the scheduler is in time."""

    def now(self) -> int:
        """Unix nanoseconds."""
        ...

    async def sleep(self, duration: int) -> None:
        """Lets `duration` nanoseconds pass, and others run meanwhile."""
        ...

    def signal(self) -> Signal:
        """A new signal, not yet said."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Has `work` run in the background, from now on; it deals with its failures itself."""
        ...

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Told after each run of a plugin; a simulated clock moves on by what that costs, a real one has moved."""
        ...
