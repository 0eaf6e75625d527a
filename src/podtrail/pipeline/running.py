"""A component that was started, with what it takes to stop it."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, Generic, TypeVar

from podtrail.component import OwnedMetrics
from podtrail.component.failures import FailureReporter
from podtrail.pipeline.settings import ComponentSettings

T = TypeVar("T", bound=AbstractAsyncContextManager[Any])


LONGEST_STOP: Final = 5.0
"""Seconds that a component gets to stop: one that hangs keeps podtrail from ending no longer."""


class Running(Generic[T]):
    """Holds a component; may pass from one graph to the next, going on as it is. Its gauges are shown while it runs."""

    def __init__(
        self, settings: ComponentSettings, component: T, failures: FailureReporter, metrics: OwnedMetrics
    ) -> None:
        self.settings = settings
        self.component = component
        self.failures = failures
        self._metrics = metrics
        self._stack: AsyncExitStack | None = None

    @property
    def started(self) -> bool:
        """Whether it was entered, and not left since."""
        return self._stack is not None

    async def start(self) -> None:
        """Enter it, unless it was.

        Raises:
            StartError: it can't be; the text names it.
        """
        if self._stack is not None:
            return
        stack = AsyncExitStack()
        try:
            await stack.enter_async_context(self.component)
        except Exception as error:
            raise self.failures.start_error(self.settings.factory.kind, error) from error
        self._stack = stack
        self._metrics.show()

    async def stop(self) -> None:
        """Leave it, if it was entered. That it fails in it, or hangs, keeps no other from being stopped."""
        stack, self._stack = self._stack, None
        if stack is None:
            return
        limit = asyncio.timeout(LONGEST_STOP)
        try:
            async with limit:
                await stack.aclose()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            self.failures.report("stop", error, f"not done within {LONGEST_STOP:g} s" if limit.expired() else "")
        finally:
            self._metrics.hide()
