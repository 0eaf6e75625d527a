"""What components raise that they should not: said in the log, counted, and no more than what they were at is lost."""

import logging
import time
from collections.abc import Callable
from traceback import TracebackException
from typing import Final, TypeVar

from podtrail.component.errors import StartError
from podtrail.component.factory import Kind
from podtrail.component.metrics import Metrics

_SILENCE_SECONDS: Final = 60.0
"""A component that fails on every batch fails alike thousands of times a second: that is said once a minute."""

T = TypeVar("T")


class FailureReporter:
    """Where the failures of one component are reported."""

    def __init__(
        self, component: str, metrics: Metrics, log: logging.LoggerAdapter[logging.Logger], pipeline: str = ""
    ) -> None:
        self._component = component
        self._labels = (component, pipeline)
        self._log = log
        self._count = metrics.counter(
            "podtrail_component_failures_total",
            "Exceptions that a component raised where it must not.",
            ("component", "pipeline"),
        )
        self._silent: dict[tuple[str, type[BaseException]], tuple[float, int]] = {}
        """Until when nothing more is said of an exception in a method, and how many were passed over."""

    def attempt(self, method: str, call: Callable[[], T], otherwise: T, cost: Callable[[], str] = str) -> T:
        """Return what a call gives. When it fails: have its cost counted, report it, and return `otherwise`."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            self.report(method, error, cost())
            return otherwise

    def report(self, method: str, error: BaseException, cost: str = "") -> None:
        """Count a failure; tell of it with its traceback unless one like it was told of within the last minute."""
        self._count.add(1, *self._labels)
        kind, now = (method, type(error)), time.monotonic()
        until, unsaid = self._silent.get(kind, (now, 0))
        if now < until:
            self._silent[kind] = (until, unsaid + 1)
            return
        self._silent[kind] = (now + _SILENCE_SECONDS, 0)
        what = f"failed in {method}: {told(error)}"
        repeated = f"{unsaid} more like it since the last line" if unsaid else ""
        self._log.error("%s", "; ".join(filter(None, (what, cost, repeated))), exc_info=error)

    def start_error(self, kind: Kind, error: Exception) -> StartError:
        """Return the error that says that a component can't start; one that is no StartError itself is reported."""
        if not isinstance(error, StartError):
            self.report("start", error)
            error = StartError(f"failed in start: {told(error)}")
        return StartError(f"{kind}s::{self._component}: {error}")


def told(error: BaseException) -> str:
    """Return what an exception says of itself, in which it may fail as well."""
    says = TracebackException(type(error), error, None, compact=True)
    return f"{type(error).__name__}: {says}"
