"""Calls plugins: within their span, timed, and so that one that raises fails an attempt and not the scheduler.

A phase has a span, and within it each plugin that was called has one: `plugin: NodeResourcesFit`. While a plugin runs
its span is the current OpenTelemetry one, so what the plugin starts nests under it.
"""

import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from opentelemetry.context import attach, detach
from podtrail_instrumentation import Span
from podtrail_instrumentation.steps import Operation, Step

from podtrail_scheduler.framework.answers import checked, in_words
from podtrail_scheduler.framework.aside import IN_PLACE, Aside, Raised, is_raised_by_plugin
from podtrail_scheduler.framework.clock import SchedulerClock
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PermitResult, Plugin, PostFilterResult, is_in_tree
from podtrail_scheduler.framework.shown import shown
from podtrail_scheduler.framework.status import SKIP, Code, Status, error
from podtrail_scheduler.objects import Pod

from .measuring import FrameworkMetrics
from .profile import Profile

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
_TITLES = {phase: phase[0].upper() + phase[1:] for phase in PHASES if phase not in ("waitOnPermit", "unreserve")}
"""What metrics call the points."""
_TITLES["unreserve"] = "Unreserve"
_EVALUATING = frozenset(("preFilter", "filter", "preScore", "score"))
_RESULTS = {result: {"scheduler.result": result} for result in ("Success", "Unschedulable", "Error")}
REJECTED = "plugin rejected"
_QUIET_POINTS = frozenset(("preFilter", "filter", "preScore", "score", "reserve", "unreserve"))
_logger = logging.getLogger("podtrail_scheduler.framework")


class PhaseFailure(NamedTuple):
    """A phase that ended with anything but success: who said so and what."""

    plugin: str
    status: Status


class Caller:
    """What the extension points of one profile have in common."""

    def __init__(
        self, profile: Profile, clock: SchedulerClock, measures: FrameworkMetrics | None = None, aside: Aside = IN_PLACE
    ) -> None:
        self.clock = clock
        self.aside = aside
        """Where the plugins of others run."""
        self.measures = measures
        self._ours = profile.in_tree
        self._profile = profile.name
        self._phases = {phase: {"scheduler.phase": phase, "scheduler.profile": profile.name} for phase in PHASES}
        self._plugins: dict[tuple[str, str], tuple[str, Mapping[str, str]]] = {}

    def start_phase(self, parent: Span, phase: str) -> Span:
        """Starts a phase's span."""
        return parent.start(phase, self._phases[phase])

    def end_phase(
        self,
        span: Span,
        refused: PhaseFailure | None = None,
        skipped: Sequence[str] = (),
        at: int | None = None,
    ) -> None:
        """Ends a phase's span with its result, at `at` if it was over before now.

        Plugins of ours that answered Skip left no span and are named on it.
        """
        status = refused.status if refused is not None else None
        if span.recording:
            span.set_attributes(_RESULTS[status.result if status is not None else "Success"])
            if skipped and (ours := tuple(filter(self._ours.__contains__, skipped))):
                span.set_attributes({"scheduler.plugins.skipped": ours})
            if status is not None and status.result == "Error":
                span.fail(status.message)
        span.end(PHASE_THRESHOLD, at)
        if self.measures is not None and span.name in _TITLES:
            assert span.ended is not None
            text = status.code.text if status is not None else "Success"
            self.measures.extension_point(_TITLES[span.name], text, self._profile, span.ended - span.started)

    def start_plugin(self, phase: Span, plugin: str, point: str, at: int | None = None) -> Span:
        """Starts a plugin's span."""
        return phase.start(*self.named(plugin, point), at)

    def run(
        self, phase: Span, plugin: Plugin, point: str, function: Callable[..., Answer], *args: Any
    ) -> Answer | Status:
        """Calls a plugin once, within a span of its own; the first of `args` is the attempt's cycle state.

        A plugin of ours that has nothing to do (Skip) leaves none, only its name on the phase's.
        """
        began = self.clock.now()
        nests = self.nests(plugin.name, point)
        if phase.recording and nests:
            span = self.start_plugin(phase, plugin.name, point, began)
            answer = self.call(span, plugin, point, 1, function, *args)
            status = _status(answer)
            self._end(span, status)
        else:
            answer = self.call(phase if nests else None, plugin, point, 1, function, *args)
            status = _status(answer)
            self._record(phase, plugin.name, point, began, status)
        if self.measures is not None:
            self.measure(args[0], plugin.name, point, status, began)
        return answer

    async def run_async(
        self,
        phase: Span,
        plugin: Plugin,
        point: str,
        function: Callable[..., Awaitable[Answer] | Answer],
        state: CycleState,
        pod: Pod,
        *args: Any,
    ) -> Answer | Status:
        """As `run`, of a plugin that may be a coroutine function at that point, or run beside other Pods' attempts."""
        began = self.clock.now()
        span = self.start_plugin(phase, plugin.name, point, began)
        token = attach(span.context) if span.context is not None else None
        answer: Answer | Status
        try:
            if plugin.name in self._ours:
                given = function(state, pod, *args)
                answer = await given if isinstance(given, Awaitable) else given
            else:
                answer = await self._call_aside(plugin, point, function, state, pod, *args)
        except (Exception, SystemExit) as raised:  # noqa: BLE001, what plugins of others raise is caught where they run
            answer = _raised(plugin, point, raised)
        finally:
            if token is not None:
                detach(token)
            self.clock.charge(plugin.name, point, 1)
        self._end(span, _status(answer))
        self.measure(state, plugin.name, point, _status(answer), began)
        return answer

    def call(
        self, span: Span | None, plugin: Plugin, point: str, calls: int, function: Callable[..., Answer], *args: Any
    ) -> Answer | Status:
        """What the plugin answers, with `span` as the current one if given; an Error that names it when it raises."""
        token = attach(span.context) if span is not None and span.context is not None else None
        try:
            if plugin.name in self._ours:
                return function(*args)
            with self.aside.outside(plugin.name, point):
                given = function(*map(shown, args))
            answer: Answer = checked(plugin.name, point, calls, given)
        except BaseException as raised:  # whatever a plugin raises must not end the scheduler
            if not is_raised_by_plugin(raised):
                raise
            return _raised(plugin, point, raised)
        else:
            return answer
        finally:
            if token is not None:
                detach(token)
            self.clock.charge(plugin.name, point, calls)

    def key(self, plugin: Plugin, point: str, function: Callable[[Pod], Hashable], pod: Pod) -> Hashable:
        """By what the plugin's answers about a Pod are remembered; an Error that names it when it raises."""
        if plugin.name in self._ours:
            return function(pod)
        try:
            with self.aside.outside(plugin.name, point):
                key = function(pod)
                hash(key)
        except BaseException as raised:
            if not is_raised_by_plugin(raised):
                raise
            return _raised(plugin, point, raised)
        return checked(plugin.name, point, 0, key) if isinstance(key, Status) else key

    async def ask(
        self, plugin: Plugin, point: str, function: Callable[..., Status | None], state: CycleState, pod: Pod, node: str
    ) -> Status | None:
        """As `run_async`, of what is of no account: without a span, and free."""
        if plugin.name in self._ours:
            return function(state, pod, node)
        told: Status | None = await self._call_aside(plugin, point, function, state, pod, node)
        return told

    async def _call_aside(
        self, plugin: Plugin, point: str, function: Callable[..., Any], state: CycleState, pod: Pod, *args: Any
    ) -> Any:
        """What a plugin of others comes to, checked; an Error that names it when it raises."""
        given = await self.aside.call(pod.key, plugin.name, point, function, state, pod, *args)
        if isinstance(given, Raised):
            return _raised(plugin, point, given.error)
        return checked(plugin.name, point, 0, given)

    def guarded(self, plugin: Plugin, point: str, function: Callable[..., Answer]) -> Callable[..., Answer]:
        """`function` as it can be called where nothing is measured: a plugin of others runs aside."""
        return function if is_in_tree(plugin) else guarded(self.aside, plugin.name, point, function)

    def nests(self, plugin: str, point: str) -> bool:
        """Whether the plugin may start spans there: ours do not, so that they need not be told which one is current."""
        return point not in _QUIET_POINTS or plugin not in self._ours

    def measure(self, state: CycleState, plugin: str, point: str, status: Status | None, began: int) -> None:
        """Tells the metrics that a plugin was asked, and for how long in an attempt whose plugins are measured."""
        if self.measures is None:
            return
        title = _TITLES[point]
        if point in _EVALUATING:
            self.measures.evaluated(plugin, title, self._profile)
        if state.measures_plugins:
            text = status.code.text if status is not None else "Success"
            self.measures.plugin(plugin, title, text, self.clock.now() - began)

    def note_long(self, phase: Span, plugin: str, point: str, began: int, ended: int) -> None:
        """Remembers a plugin that took long for the log about a long attempt, where no span does."""
        operation = Operation(*self.named(plugin, point), began)
        operation.ended, operation.threshold = ended, PLUGIN_THRESHOLD
        phase.items.append(operation)

    def _record(self, phase: Span, plugin: str, point: str, began: int, status: Status | None) -> None:
        now = self.clock.now()
        if now - began >= PLUGIN_THRESHOLD:
            self.note_long(phase, plugin, point, began, now)
        if not phase.recording:
            return
        if status is SKIP or (status is not None and status.code is Code.SKIP):
            return
        if status is None or status.code is Code.SUCCESS:
            phase.leaf(*self.named(plugin, point), began, now)
        else:
            told = {"scheduler.result": status.code.text, "scheduler.reason": status.message}
            failure = status.message if status.code is Code.ERROR else ""
            phase.leaf(*self.named(plugin, point), began, now, events=[Step(REJECTED, now, told)], failure=failure)

    def named(self, plugin: str, point: str) -> tuple[str, Mapping[str, str]]:
        """The name and the attributes of a plugin's span."""
        known = self._plugins.get((plugin, point))
        if known is None:
            attributes = {"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": point}
            known = self._plugins[plugin, point] = (f"plugin: {plugin}", attributes)
        return known

    def _end(self, span: Span, status: Status | None) -> None:
        if status is not None and span.recording:
            if status.code is Code.SKIP:
                span.set_attributes({"scheduler.plugin.status": "Skip"})
            elif status.code is not Code.WAIT and status.code is not Code.SUCCESS:
                told = {"scheduler.result": status.code.text, "scheduler.reason": status.message}
                span.add_event(REJECTED, told)
                if status.code is Code.ERROR:
                    span.fail(status.message)
        span.end(PLUGIN_THRESHOLD)


def guarded(aside: Aside, plugin: str, point: str, function: Callable[..., Answer]) -> Callable[..., Answer]:
    """`function` of a plugin of others, run aside."""

    def call(*args: Any) -> Answer:
        with aside.outside(plugin, point):
            return function(*map(shown, args))

    return call


def _status(answer: object) -> Status | None:
    if answer is None:
        return None
    if isinstance(answer, PermitResult | PostFilterResult):
        return answer.status
    return answer if isinstance(answer, Status) else None


def _raised(plugin: Plugin, point: str, raised: BaseException) -> Status:
    _logger.error("Plugin %s raised at %s", plugin.name, point, exc_info=raised)
    return error(f"plugin {plugin.name} raised {in_words(raised)}")
