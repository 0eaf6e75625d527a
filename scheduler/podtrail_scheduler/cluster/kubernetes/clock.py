"""The scheduler's clock on a real cluster: the machine's time, and asyncio."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from threading import get_ident
from typing import Any

from podtrail_scheduler.objects.durations import SECOND

_log = logging.getLogger(__name__)


class AsyncioSignal:
    """A signal between coroutines, of whichever event loops."""

    def __init__(self) -> None:
        self._said = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, int, asyncio.Event]] = []
        """The loop and thread of each that waits."""

    def set(self) -> None:
        """Says it, from any thread: who waits goes on, who comes later does not wait."""
        self._said = True
        for loop, thread, event in [*self._waiting]:
            if thread == get_ident():
                event.set()
            elif not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def wait(self, timeout: int | None = None) -> bool:  # noqa: ASYNC109, the interface's
        """Waits until it has been said, at most `timeout` nanoseconds; False when time was up first."""
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), get_ident(), event))
        if self._said:  # asked behind the append: nothing is missed
            return True
        try:
            async with asyncio.timeout(None if timeout is None else timeout / SECOND):
                return await event.wait()
        except TimeoutError:
            return False


class AsyncioClock:
    """Unix nanoseconds that run with the monotonic clock, so that a corrected wall clock turns no interval negative."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Background work runs on `loop`, by default the running one."""
        self._offset = time.time_ns() - time.monotonic_ns()
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._thread = get_ident() if loop is None else None
        self._background: set[asyncio.Task[None]] = set()

    def now(self) -> int:
        """The wall's time in unix nanoseconds."""
        return time.monotonic_ns() + self._offset

    async def sleep(self, duration: int) -> None:
        """Lets `duration` nanoseconds pass, and others run meanwhile."""
        await asyncio.sleep(duration / SECOND)

    def signal(self) -> AsyncioSignal:
        """A new signal, not yet set."""
        return AsyncioSignal()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Has `work` run in the background, from any thread; a failure that it did not deal with is logged."""
        if self._thread == get_ident():
            self._begin(work)
        else:
            self._loop.call_soon_threadsafe(self._begin, work)

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Does nothing: on a real cluster time has passed by itself."""

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)

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
