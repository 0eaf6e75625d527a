"""Calls plugins: within their span, timed, and so that one that raises fails an attempt and not the scheduler.

A phase has a span, and within it each plugin that was called has one: `plugin: NodeResourcesFit`. While a plugin runs
its span is the current OpenTelemetry one, so what the plugin starts nests under it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from opentelemetry.context import attach, detach
from podtrail_instrumentation import Span

from .clock import Clock
from .extension_points import Plugin
from .status import Code, Status, error

Answer = TypeVar("Answer")

PHASE_THRESHOLD = 50_000_000
PLUGIN_THRESHOLD = 20_000_000
"""From how many nanoseconds on phases and plugins stand in the log about a long attempt."""

PHASES = (
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "waitOnPermit",
    "preBind",
    "bind",
    "postBind",
    "unreserve",
)
_OURS = "podtrail_scheduler.plugins."
_QUIET_POINTS = frozenset(("preFilter", "filter", "preScore", "score", "reserve", "unreserve"))
_logger = logging.getLogger("podtrail_scheduler.framework")


class Durations(Protocol):
    """Who measures what takes how long: the metrics of kube-scheduler's names."""

    def extension_point(self, point: str, status: str, nanoseconds: int) -> None:
        """A whole phase was run."""
        ...

    def plugin(self, plugin: str, point: str, status: str, nanoseconds: int) -> None:
        """A plugin was run."""
        ...


class Refused(NamedTuple):
    """A phase that ended with anything but success: who said so and what."""

    plugin: str
    status: Status


class Caller:
    """What the extension points of one profile have in common."""

    def __init__(self, profile: str, clock: Clock, durations: Durations | None = None) -> None:
        self.clock = clock
        self.durations = durations
        self._phases = {phase: {"scheduler.phase": phase, "scheduler.profile": profile} for phase in PHASES}
        self._plugins: dict[tuple[str, str], tuple[str, Mapping[str, str]]] = {}

    def start_phase(self, parent: Span, phase: str) -> Span:
        """Starts a phase's span."""
        return parent.start(phase, self._phases[phase])

    def end_phase(self, span: Span, refused: Refused | None = None) -> None:
        """Ends a phase's span with its result."""
        status = refused.status if refused is not None else None
        if span.recording:
            span.set_attributes({"scheduler.result": status.result if status is not None else "Success"})
            if status is not None and status.result == "Error":
                span.fail(status.message)
        span.end(PHASE_THRESHOLD)
        if self.durations is not None:
            assert span.ended is not None
            text = status.code.text if status is not None else "Success"
            self.durations.extension_point(span.name, text, span.ended - span.started)

    def start_plugin(self, phase: Span, plugin: str, point: str) -> Span:
        """Starts a plugin's span."""
        known = self._plugins.get((plugin, point))
        if known is None:
            attributes = {"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": point}
            known = self._plugins[plugin, point] = (f"plugin: {plugin}", attributes)
        return phase.start(*known)

    def call(
        self, span: Span, plugin: Plugin, point: str, calls: int, function: Callable[..., Answer], *args: Any
    ) -> Answer | Status:
        """What the plugin answers, an Error that names it when it raises."""
        token = attach(span.context) if span.recording and span.context and not _quiet(plugin, point) else None
        try:
            return function(*args)
        except Exception as raised:  # noqa: BLE001, whatever a plugin raises must not end the scheduler
            return _raised(plugin, point, raised)
        finally:
            if token is not None:
                detach(token)
            self.clock.charge(plugin.name, point, calls)

    async def call_async(
        self, span: Span, plugin: Plugin, point: str, function: Callable[..., Awaitable[Answer] | Answer], *args: Any
    ) -> Answer | Status:
        """As `call` for one node, of a plugin that may be a coroutine function there."""
        token = attach(span.context) if span.recording and span.context else None
        try:
            answer = function(*args)
            return await answer if isinstance(answer, Awaitable) else answer
        except Exception as raised:  # noqa: BLE001, as in `call`
            return _raised(plugin, point, raised)
        finally:
            if token is not None:
                detach(token)
            self.clock.charge(plugin.name, point, 1)

    def end_plugin(self, span: Span, status: Status | None) -> None:
        """Ends a plugin's span, with an event when it refused."""
        if status is not None and span.recording:
            if status.code is Code.SKIP:
                span.set_attributes({"scheduler.plugin.status": "Skip"})
            elif status.code is not Code.WAIT and status.code is not Code.SUCCESS:
                told = {"scheduler.result": status.code.text, "scheduler.reason": status.message}
                span.add_event("plugin rejected", told)
                if status.code is Code.ERROR:
                    span.fail(status.message)
        span.end(PLUGIN_THRESHOLD)


def _quiet(plugin: Plugin, point: str) -> bool:
    """Whether a plugin of our own starts no span there, so that it need not be told which one is current."""
    return point in _QUIET_POINTS and type(plugin).__module__.startswith(_OURS)


def _raised(plugin: Plugin, point: str, raised: Exception) -> Status:
    _logger.error("Plugin %s raised at %s", plugin.name, point, exc_info=raised)
    return error(f"plugin {plugin.name} raised {type(raised).__name__}: {raised}")
