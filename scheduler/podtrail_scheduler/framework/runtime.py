"""Runs the extension points of a profile and makes their spans (KEP-5927).

A phase has a span, and within it each plugin that was called has one: `plugin: NodeResourcesFit`, not one per node but
with the number of nodes and the summed time. While a plugin runs its span is the current OpenTelemetry one, so what
the plugin starts nests under it. What the KEP's tree does not name: PreEnqueue and QueueSort run outside attempts and
have no span; NormalizeScore is part of a Score plugin's; `waitOnPermit` and `unreserve` appear only when they happen.
The whole tree with its attributes is in the package's description.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from opentelemetry.context import attach, detach
from podtrail_instrumentation import Span

from podtrail_scheduler.objects import Pod

from .clock import Clock
from .cycle_state import CycleState
from .extension_points import MAX_SCORE, NormalizeScorePlugin, Plugin, PostFilterResult, ScorePlugin
from .node_info import NodeInfo
from .profile import Profile
from .status import Code, Status, error
from .waiting import WaitingPod

Answer = TypeVar("Answer")

MAX_PERMIT_WAIT = 15 * 60 * 1_000_000_000
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


class Refused(NamedTuple):
    """A phase that ended with anything but success: who said so and what."""

    plugin: str
    status: Status


class Framework:
    """The extension points of one profile as one call each; `parent` is the span of the cycle they belong to."""

    def __init__(self, profile: Profile, clock: Clock) -> None:
        self.profile = profile
        self.clock = clock
        self._phase_attributes = {
            phase: {"scheduler.phase": phase, "scheduler.profile": profile.name} for phase in PHASES
        }
        self._plugin_attributes: dict[tuple[str, str], tuple[str, Mapping[str, str]]] = {}

    def start_phase(self, parent: Span, phase: str) -> Span:
        """Starts a phase's span."""
        return parent.start(phase, self._phase_attributes[phase])

    def end_phase(self, span: Span, refused: Refused | None = None) -> None:
        """Ends a phase's span with its result."""
        if span.recording:
            status = refused.status if refused is not None else None
            span.set_attributes({"scheduler.result": status.result if status is not None else "Success"})
            if status is not None and status.code is Code.ERROR:
                span.fail(status.message)
        span.end(PHASE_THRESHOLD)

    def start_plugin(self, phase: Span, plugin: str, point: str) -> Span:
        """Starts a plugin's span."""
        known = self._plugin_attributes.get((plugin, point))
        if known is None:
            attributes = {"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": point}
            known = self._plugin_attributes[plugin, point] = (f"plugin: {plugin}", attributes)
        return phase.start(*known)

    def invoke(self, span: Span, plugin: str, point: str, calls: int, call: Callable[[], Answer]) -> Answer:
        """Calls a plugin within its span, once however many nodes it looks at."""
        if span.recording:
            assert span.context is not None
            token = attach(span.context)
            try:
                answer = call()
            finally:
                detach(token)
        else:
            answer = call()
        self.clock.charge(plugin, point, calls)
        return answer

    def run_pre_filter(self, parent: Span, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Refused | None:
        """Prepares the filters and notes which have nothing to do."""
        phase = self.start_phase(parent, "preFilter")
        refused = None
        for plugin in self.profile.pre_filter:
            status = self._ask(phase, plugin, "preFilter", partial(plugin.pre_filter, state, pod, nodes))
            if status is not None and status.code is Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif status is not None:
                refused = Refused(plugin.name, status)
                break
        self.end_phase(phase, refused)
        return refused

    def run_post_filter(
        self, parent: Span, state: CycleState, pod: Pod, refusals: Mapping[str, Status]
    ) -> PostFilterResult:
        """Asks each plugin in turn to make room, until one has; texts of those that could not are joined."""
        phase = self.start_phase(parent, "postFilter")
        messages = []
        nominated: str | None = None
        code = Code.UNSCHEDULABLE
        for plugin in self.profile.post_filter:
            span = self.start_plugin(phase, plugin.name, "postFilter")
            call = partial(plugin.post_filter, state, pod, refusals)
            answer = self.invoke(span, plugin.name, "postFilter", len(refusals), call)
            self._end_plugin(span, answer.status)
            if answer.nominated_node is not None:
                nominated = answer.nominated_node
            if answer.status is not None and answer.status.code is Code.ERROR:
                messages, code = [answer.status.message], Code.ERROR
                break
            if answer.status is not None and answer.status.message:
                messages.append(answer.status.message)
            if nominated:
                code = Code.SUCCESS
                break
        status = Status(code, tuple(messages))
        self.end_phase(phase, None if code is Code.SUCCESS else Refused("", status))
        return PostFilterResult(status, nominated)

    def run_score(
        self, parent: Span, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeInfo, Refused | None]:
        """The node with the highest sum of weighted scores; the first of those that are equal."""
        refused = self._run_pre_score(parent, state, pod, nodes)
        if refused is not None:
            return nodes[0], refused
        phase = self.start_phase(parent, "score")
        totals = [0] * len(nodes)
        for plugin in self.profile.score:
            if plugin.name in state.skip_score:
                continue
            span = self.start_plugin(phase, plugin.name, "score")
            call = partial(_scores, plugin, self.profile.normalizers.get(plugin.name), state, pod, nodes)
            scores = self.invoke(span, plugin.name, "score", len(nodes), call)
            if span.recording:
                took = self.clock.now() - span.started
                span.set_attributes({"scheduler.nodes.evaluated": len(nodes), "scheduler.duration_ns": took})
            span.end(PLUGIN_THRESHOLD)
            wrong = next((score for score in scores if not 0 <= score <= MAX_SCORE), None)
            if wrong is not None:
                text = f"plugin {plugin.name!r} returns an invalid score {wrong}, it should in the range of [0, 100]"
                refused = Refused(plugin.name, error(text))
                break
            weight = self.profile.weights[plugin.name]
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
        self.end_phase(phase, refused)
        return nodes[totals.index(max(totals))], refused

    def _run_pre_score(self, parent: Span, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Refused | None:
        phase = self.start_phase(parent, "preScore")
        refused = None
        for plugin in self.profile.pre_score:
            status = self._ask(phase, plugin, "preScore", partial(plugin.pre_score, state, pod, nodes))
            if status is not None and status.code is Code.SKIP:
                state.skip_score.add(plugin.name)
            elif status is not None:
                refused = Refused(plugin.name, error(f'running PreScore plugin "{plugin.name}": {status.message}'))
                break
        self.end_phase(phase, refused)
        return refused

    def run_reserve(self, parent: Span, state: CycleState, pod: Pod, node: str) -> Refused | None:
        """Has each plugin keep what it must for the Pod."""
        asked = [(plugin, partial(plugin.reserve, state, pod, node)) for plugin in self.profile.reserve]
        return self._until_refused(parent, "reserve", "Reserve", asked)

    def run_unreserve(self, parent: Span, state: CycleState, pod: Pod, node: str) -> None:
        """Undoes `run_reserve`, in reverse."""
        if not self.profile.reserve:
            return
        phase = self.start_phase(parent, "unreserve")
        for plugin in reversed(self.profile.reserve):
            span = self.start_plugin(phase, plugin.name, "unreserve")
            self.invoke(span, plugin.name, "unreserve", 1, partial(plugin.unreserve, state, pod, node))
            span.end(PLUGIN_THRESHOLD)
        self.end_phase(phase)

    def run_permit(
        self, parent: Span, state: CycleState, pod: Pod, node: str
    ) -> tuple[WaitingPod | None, Refused | None]:
        """Whether the Pod may bind now, must wait, or may not."""
        phase = self.start_phase(parent, "permit")
        timeouts: dict[str, int] = {}
        refused = None
        for plugin in self.profile.permit:
            span = self.start_plugin(phase, plugin.name, "permit")
            answer = self.invoke(span, plugin.name, "permit", 1, partial(plugin.permit, state, pod, node))
            self._end_plugin(span, answer.status)
            if answer.status is not None and answer.status.code is Code.WAIT:
                timeouts[plugin.name] = min(answer.timeout, MAX_PERMIT_WAIT)
            elif answer.status is not None:
                refused = Refused(plugin.name, _explained(answer.status, "Permit", plugin.name))
                break
        self.end_phase(phase, refused)
        waits = timeouts and refused is None
        return (WaitingPod(pod.uid, self.clock.now(), timeouts) if waits else None), refused

    def run_pre_bind(self, parent: Span, state: CycleState, pod: Pod, node: str) -> Refused | None:
        """Has each plugin do what must precede binding."""
        asked = [(plugin, partial(plugin.pre_bind, state, pod, node)) for plugin in self.profile.pre_bind]
        return self._until_refused(parent, "preBind", "PreBind", asked)

    def _until_refused(
        self, parent: Span, name: str, title: str, asked: Sequence[tuple[Plugin, Callable[[], Status | None]]]
    ) -> Refused | None:
        """Asks one plugin after the other, and none behind the first that refuses."""
        phase = self.start_phase(parent, name)
        refused = None
        for plugin, call in asked:
            status = self._ask(phase, plugin, name, call)
            if status is not None:
                refused = Refused(plugin.name, _explained(status, title, plugin.name))
                break
        self.end_phase(phase, refused)
        return refused

    def run_bind(self, parent: Span, state: CycleState, pod: Pod, node: str) -> Refused | None:
        """Asks the binders in turn; the first that does not skip has bound the Pod, or failed."""
        phase = self.start_phase(parent, "bind")
        phase.set_attributes({"scheduler.selected_node": node})
        refused: Refused | None = Refused("", error("no plugin binds this Pod"))
        for plugin in self.profile.bind:
            status = self._ask(phase, plugin, "bind", partial(plugin.bind, state, pod, node))
            if status is None or status.code is not Code.SKIP:
                refused = status and Refused(plugin.name, _explained(status, "Bind", plugin.name))
                break
        self.end_phase(phase, refused)
        return refused

    def run_post_bind(self, parent: Span, state: CycleState, pod: Pod, node: str) -> None:
        """Tells those who want to know."""
        phase = self.start_phase(parent, "postBind")
        for plugin in self.profile.post_bind:
            span = self.start_plugin(phase, plugin.name, "postBind")
            self.invoke(span, plugin.name, "postBind", 1, partial(plugin.post_bind, state, pod, node))
            span.end(PLUGIN_THRESHOLD)
        self.end_phase(phase)

    def _ask(self, phase: Span, plugin: Plugin, point: str, call: Callable[[], Status | None]) -> Status | None:
        span = self.start_plugin(phase, plugin.name, point)
        status = self.invoke(span, plugin.name, point, 1, call)
        self._end_plugin(span, status)
        return status

    def _end_plugin(self, span: Span, status: Status | None) -> None:
        if status is not None and status.code is Code.SKIP:
            span.set_attributes({"scheduler.plugin.status": "Skip"})
        elif status is not None and (status.rejected or status.code is Code.ERROR):
            span.add_event(
                "plugin rejected", {"scheduler.result": status.code.text, "scheduler.reason": status.message}
            )
            if status.code is Code.ERROR:
                span.fail(status.message)
        span.end(PLUGIN_THRESHOLD)


def _scores(
    plugin: ScorePlugin,
    normalizer: NormalizeScorePlugin | None,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
) -> Sequence[int]:
    score = plugin.score
    scores = [score(state, pod, node) for node in nodes]
    return scores if normalizer is None else normalizer.normalize(state, pod, nodes, scores)


def _explained(status: Status, point: str, plugin: str) -> Status:
    """An internal failure is told with where it happened, a refusal as it is."""
    if status.rejected:
        return status
    return error(f'running {point} plugin "{plugin}": {status.message}')
