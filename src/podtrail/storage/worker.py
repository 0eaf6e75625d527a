"""The thread in which a store reads and writes, one thing after the other; or, for a simulation, no thread at all."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Worker(Protocol):
    """Does work that blocks."""

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; what was asked for earlier is done earlier."""

    def end(self) -> None:
        """Take no more work; what was asked for is done."""


class ThreadWorker:
    """A thread of its own. A daemon: one that writes to a disk that hangs can't be ended, and nobody waits for it."""

    def __init__(self, name: str) -> None:
        """Start it."""
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._do_all, name=name, daemon=True).start()

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done in the thread, even if nobody waits for it any longer."""
        done: Future[T] = Future()
        self._work.put((done, work))
        return await asyncio.shield(asyncio.wrap_future(done))

    def end(self) -> None:
        """Take no more work."""
        self._work.put(None)

    def _do_all(self) -> None:
        while (next_ := self._work.get()) is not None:
            done, work = next_
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                done.set_exception(error)
            del done, work, next_


class InlineWorker:
    """Does it at once, on the loop that asks: for runs in virtual time."""

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns."""
        return work()

    def end(self) -> None:
        """Do nothing: there is nothing to end."""


def inline(_: str) -> Worker:
    """Make an `InlineWorker`, where a `ThreadWorker` would be made."""
    return InlineWorker()
