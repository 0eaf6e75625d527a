"""A thread for calls of librdkafka that block, and that nobody waits for at the end: one may never return."""

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

_Call = tuple["asyncio.Future[None]", Callable[[], Any]]


class BlockingCalls:
    """Makes calls one after the other, also when whoever asked for one has gone."""

    def __init__(self, name: str) -> None:
        """Start the thread, of this name; in a running loop."""
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        # A pool's threads are waited for when Python ends: librdkafka was seen to keep one for ever.
        Thread(target=self._run, name=name, daemon=True).start()

    async def make(self, call: Callable[[], Any], seconds: float) -> None:
        """Make a call when those before it are over.

        Raises:
            TimeoutError: it has not returned after so many seconds; what becomes of it stays unknown.
            Exception: what the call raises.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._calls.put((done, call))
        async with asyncio.timeout(seconds):
            await done

    def end(self) -> None:
        """Take no more calls; that of now goes on."""
        self._calls.put(None)

    def _run(self) -> None:
        while (asked := self._calls.get()) is not None:
            done, call = asked
            failure: BaseException | None = None
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                failure = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, failure)
            except RuntimeError:  # the loop has ended meanwhile
                return


def _settle(done: "asyncio.Future[None]", failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
