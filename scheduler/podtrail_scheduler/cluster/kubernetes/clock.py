"""The scheduler's clock on a real cluster: the machine's time, and asyncio."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

SECOND = 1_000_000_000

_log = logging.getLogger(__name__)


class AsyncioSignal:
    """A signal between coroutines of one event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Says it: who waits goes on, who comes later does not wait."""
        self._event.set()

    async def wait(self, timeout: int | None = None) -> bool:  # noqa: ASYNC109, the interface's
        """Waits until it has been said, at most `timeout` nanoseconds; False when time was up first."""
        try:
            async with asyncio.timeout(None if timeout is None else timeout / SECOND):
                return await self._event.wait()
        except TimeoutError:
            return False


class AsyncioClock:
    """Unix nanoseconds that run with the monotonic clock, so that a corrected wall clock turns no interval negative."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()
        self._background: set[asyncio.Task[None]] = set()

    def now(self) -> int:
        """Unix nanoseconds."""
        return time.monotonic_ns() + self._offset

    async def sleep(self, duration: int) -> None:
        """Lets `duration` nanoseconds pass, and others run meanwhile."""
        await asyncio.sleep(duration / SECOND)

    def signal(self) -> AsyncioSignal:
        """A new signal, not yet said."""
        return AsyncioSignal()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Has `work` run in the background; a failure that it did not deal with itself is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Nothing: time has passed by itself."""

    async def stop(self) -> None:
        """Cancels what runs in the background and waits for its end."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background work failed", exc_info=error)
