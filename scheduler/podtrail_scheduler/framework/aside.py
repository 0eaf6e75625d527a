"""Runs plugins of others beside the scheduler, which must go on while one of them takes its time.

All that the scheduler keeps (cache, queue, nominations) belongs to one thread, and so do the plugins that come with it.
Those of others may wait for somebody or never return. While one of them is busy, binding cycles, watches, the lease and
probes go on; the scheduling cycle that called it waits, as there is one at a time.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar

Answer = TypeVar("Answer")


class SchedulerSignal(BaseException):
    """Base of exceptions that the scheduler raises through the code of plugins, for itself."""


def is_raised_by_plugin(raised: BaseException) -> bool:
    """Return whether an exception of a plugin's function is its failure, which costs the attempt but not the scheduler.

    `sys.exit` is, and so is a `CancelledError`: a function, unlike a coroutine, can't be cancelled by others.
    """
    return not isinstance(raised, (KeyboardInterrupt, GeneratorExit, SchedulerSignal))


class Raised(NamedTuple):
    """What a plugin raised in place of an answer: as a value, for a coroutine can't raise everything on."""

    error: BaseException


class Aside(Protocol):
    """Calls plugins of others, so that the scheduler goes on while they take their time."""

    async def work(self, pod: str, function: Callable[..., Answer], *args: Any) -> Answer:
        """What `function` returns, which is ours and may call plugins of others within `outside`; about `pod`."""
        ...

    def outside(self, plugin: str, point: str) -> AbstractContextManager[None]:
        """Is entered around a plugin's own code, within `work`: everything else may go on meanwhile."""
        ...

    async def call(
        self, pod: str, plugin: str, point: str, function: Callable[..., Awaitable[Answer] | Answer], *args: Any
    ) -> Answer | Raised:
        """What a plugin's method, a coroutine function or not, comes to; everything else may go on meanwhile."""
        ...


class InPlace:
    """For a simulation, which waits for nobody, and for profiles without plugins of others."""

    async def work(self, pod: str, function: Callable[..., Answer], *args: Any) -> Answer:  # noqa: ARG002
        """What `function` returns."""
        return function(*args)

    def outside(self, plugin: str, point: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """A context that does nothing."""
        return _HERE

    async def call(
        self,
        pod: str,  # noqa: ARG002
        plugin: str,  # noqa: ARG002
        point: str,  # noqa: ARG002
        function: Callable[..., Awaitable[Answer] | Answer],
        *args: Any,
    ) -> Answer | Raised:
        """What `function` returns, or comes to."""
        try:
            given = function(*args)
            return await given if isinstance(given, Awaitable) else given
        except BaseException as raised:  # who asked deals with it
            if not is_raised_by_plugin(raised):
                raise
            return Raised(raised)


_HERE = nullcontext()
IN_PLACE = InPlace()
