"""Runs the extension points of a profile but Filter and Score, which have modules of their own.

What the tree of KEP-5927 does not name: PreEnqueue and QueueSort run outside attempts and have no span; NormalizeScore
is part of a Score plugin's; `waitOnPermit` and `unreserve` appear only when they happen. The whole tree with its
attributes is in the package's description.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from podtrail_instrumentation import Span

from podtrail_scheduler.framework.aside import IN_PLACE, Aside
from podtrail_scheduler.framework.clock import SchedulerClock
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PermitResult, Plugin, PostFilterResult, PreFilterResult
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.nominator import Nominator
from podtrail_scheduler.framework.status import Code, Status, error, unresolvable
from podtrail_scheduler.framework.trial import FilterTrial
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.objects import Pod

from .calling import Caller, PhaseFailure
from .measuring import FrameworkMetrics
from .node_table import NodeTable
from .profile import Profile
from .remembering import AnswerMemory

Answer = TypeVar("Answer")

MAX_PERMIT_WAIT = 15 * 60 * 1_000_000_000
"""Nanoseconds that a Pod waits for permission at most, whatever plugins ask for (upstream's `maxTimeout`)."""


class PreFilterOutcome(NamedTuple):
    """The answers of all PreFilter plugins together."""

    refused: PhaseFailure | None = None
    node_names: frozenset[str] | None = None
    """The only nodes that are worth a look; None: all."""
    restricting: tuple[str, ...] = ()
    """The plugins that named them."""


class Framework:
    """The extension points of one profile as one call each; `parent` is the span of the cycle they belong to."""

    def __init__(
        self,
        profile: Profile,
        clock: SchedulerClock,
        table: NodeTable,
        nominator: Nominator,
        *,
        trial: FilterTrial | None = None,
        measures: FrameworkMetrics | None = None,
        aside: Aside = IN_PLACE,
    ) -> None:
        """Plugins of others, if the profile has any, run `aside`."""
        self.profile = profile
        self.clock = clock
        self.table = table
        self.memory = AnswerMemory(table)
        self.nominator = nominator
        self.aside = IN_PLACE if profile.in_tree.issuperset(profile.names) else aside
        self.caller = Caller(profile, clock, measures, self.aside)
        self.trial = trial or FilterTrial()
        self.trial.serve(nominator, profile.filter, profile.pre_filter_extensions, self.caller.guarded)

    def run_pre_filter(self, parent: Span, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> PreFilterOutcome:
        """Prepares the filters, notes which have nothing to do, and on which nodes to look."""
        phase = self.caller.start_phase(parent, "preFilter")
        skipped: list[str] = []
        prepared = self._pre_filter(phase, skipped, state, pod, nodes)
        self.caller.end_phase(phase, prepared.refused, skipped)
        return prepared

    def _pre_filter(
        self, phase: Span, skipped: list[str], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> PreFilterOutcome:
        caller = self.caller
        refused: PhaseFailure | None = None
        names: frozenset[str] | None = None
        restricting: list[str] = []
        for plugin in self.profile.pre_filter:
            answer = caller.run(phase, plugin, "preFilter", plugin.pre_filter, state, pod, nodes)
            status = answer if isinstance(answer, Status) else None
            if status is not None and status.code is not Code.SUCCESS:
                if status.code is Code.SKIP:
                    state.skip_filter.add(plugin.name)
                    skipped.append(plugin.name)
                elif status.code is Code.UNSCHEDULABLE:
                    refused = PhaseFailure(plugin.name, status)
                elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return PreFilterOutcome(PhaseFailure(plugin.name, status))
                else:
                    return PreFilterOutcome(PhaseFailure(plugin.name, _failed("PreFilter", plugin.name, status)))
            elif isinstance(answer, PreFilterResult):
                restricting.append(plugin.name)
                names = answer.node_names if names is None else names & answer.node_names
                if not names:
                    return PreFilterOutcome(
                        PhaseFailure("", unresolvable(_nowhere(restricting))), names, tuple(restricting)
                    )
        return PreFilterOutcome(refused, names, tuple(restricting))

    async def run_post_filter(
        self, parent: Span, state: CycleState, pod: Pod, refusals: Mapping[str, Status]
    ) -> PostFilterResult:
        """Asks each plugin in turn to make room, until one has; texts of those that could not are joined."""
        caller = self.caller
        phase = caller.start_phase(parent, "postFilter")
        reasons: list[str] = []
        nominated: str | None = None
        result: PostFilterResult | None = None
        for plugin in self.profile.post_filter:
            answer = await caller.run_async(phase, plugin, "postFilter", plugin.post_filter, state, pod, refusals)
            if isinstance(answer, Status):
                answer = PostFilterResult(answer, None)
            status = answer.status
            if status is None or status.code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
                result = answer
            elif not status.rejected:
                result = PostFilterResult(error(status.message), None)
            if result is not None:
                break
            assert status is not None
            nominated = answer.nominated_node if answer.nominated_node is not None else nominated
            reasons += status.reasons
        result = result or PostFilterResult(Status(Code.UNSCHEDULABLE, tuple(reasons)), nominated)
        went_wrong = result.status is not None and result.status.code is not Code.SUCCESS
        caller.end_phase(phase, PhaseFailure("", result.status) if went_wrong and result.status else None)
        return result

    async def run_reserve(self, parent: Span, state: CycleState, pod: Pod, node: str) -> PhaseFailure | None:
        """Has each plugin keep what it must for the Pod; none behind the first that refuses."""
        phase = self.caller.start_phase(parent, "reserve")
        refused = None
        for plugin in self.profile.reserve:
            status = await self._reserving(phase, plugin, "reserve", plugin.reserve, state, pod, node)
            refused = _refused("Reserve", plugin.name, status)
            if refused is not None:
                break
        self.caller.end_phase(phase, refused)
        return refused

    async def run_unreserve(self, parent: Span, state: CycleState, pod: Pod, node: str) -> None:
        """Has all Reserve plugins give back what they keep, in reverse order."""
        if not self.profile.reserve:
            return
        phase = self.caller.start_phase(parent, "unreserve")
        for plugin in reversed(self.profile.reserve):
            await self._reserving(phase, plugin, "unreserve", plugin.unreserve, state, pod, node)
        self.caller.end_phase(phase)

    async def _reserving(
        self, phase: Span, plugin: Plugin, point: str, function: Callable[..., Answer], state: CycleState, *args: Any
    ) -> Answer | Status:
        """Calls the plugin; one of ours that had nothing to filter has nothing to keep, and leaves no span."""
        caller = self.caller
        if plugin.name not in self.profile.in_tree:
            return await caller.run_async(phase, plugin, point, function, state, *args)
        if plugin.name not in state.skip_filter:
            return caller.run(phase, plugin, point, function, state, *args)
        began = caller.clock.now()
        answer = caller.call(None, plugin, point, 1, function, state, *args)
        caller.measure(state, plugin.name, point, answer if isinstance(answer, Status) else None, began)
        return answer

    async def run_permit(
        self, parent: Span, state: CycleState, pod: Pod, node: str
    ) -> tuple[WaitingPod | None, PhaseFailure | None]:
        """Whether the Pod may bind now, must wait, or may not."""
        phase = self.caller.start_phase(parent, "permit")
        timeouts: dict[str, int] = {}
        refused = None
        for plugin in self.profile.permit:
            answer = await self.caller.run_async(phase, plugin, "permit", plugin.permit, state, pod, node)
            result = answer if isinstance(answer, PermitResult) else PermitResult(answer)
            if result.status is not None and result.status.code is Code.WAIT:
                timeouts[plugin.name] = min(result.timeout, MAX_PERMIT_WAIT)
                continue
            refused = _refused("Permit", plugin.name, result.status)
            if refused is not None:
                break
        self.caller.end_phase(phase, refused)
        waits = timeouts and refused is None
        return (WaitingPod(pod, node, self.clock, timeouts) if waits else None), refused

    async def wait_on_permit(self, parent: Span, waiting: WaitingPod) -> PhaseFailure | None:
        """Waits until the Pod is allowed, refused, or the first plugin's patience has ended."""
        phase = self.caller.start_phase(parent, "waitOnPermit")
        await waiting.wait()
        refused = None
        if waiting.status is not None:
            status = waiting.status
            if not status.rejected:
                status = error(f"waiting on permit for pod: {status.message}")
            refused = PhaseFailure(waiting.refused_by, status)
        self.caller.end_phase(phase, refused)
        if self.caller.measures is not None and phase.ended is not None:
            text = refused.status.code.text if refused is not None else "Success"
            self.caller.measures.permit_wait(text, phase.ended - phase.started)
        return refused

    async def run_pre_bind_pre_flight(self, state: CycleState, pod: Pod, node: str) -> PhaseFailure | bool:
        """Whether any PreBind plugin has work; those that say they have none are left out of `run_pre_bind`."""
        began = self.clock.now()
        answer = await self._pre_flight(state, pod, node)
        if self.caller.measures is not None:
            text = answer.status.code.text if isinstance(answer, PhaseFailure) else "Success" if answer else "Skip"
            took = self.clock.now() - began
            self.caller.measures.extension_point("PreBindPreFlight", text, self.profile.name, took)
        return answer

    async def _pre_flight(self, state: CycleState, pod: Pod, node: str) -> PhaseFailure | bool:
        busy = False
        for plugin in self.profile.pre_bind:
            asked = self.profile.pre_flights.get(plugin.name)
            status = None
            if asked is not None:
                status = await self.caller.ask(plugin, "preBindPreFlight", asked.pre_bind_pre_flight, state, pod, node)
            if status is None or status.code is Code.SUCCESS:
                busy = True
            elif status.code is Code.SKIP:
                state.skip_pre_bind.add(plugin.name)
            elif status.code is Code.ERROR:
                text = f'running PreBindPreFlight "{plugin.name}": {status.message}'
                return PhaseFailure(plugin.name, error(text))
            else:
                text = (
                    f'PreBindPreFlight {plugin.name} returned "{status.code.text}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                )
                return PhaseFailure(plugin.name, error(text))
        return busy

    async def run_pre_bind(self, parent: Span, state: CycleState, pod: Pod, node: str) -> PhaseFailure | None:
        """Has each plugin do what must precede binding."""
        phase = self.caller.start_phase(parent, "preBind")
        refused = None
        for plugin in self.profile.pre_bind:
            if plugin.name in state.skip_pre_bind:
                continue
            status = await self.caller.run_async(phase, plugin, "preBind", plugin.pre_bind, state, pod, node)
            refused = _refused("PreBind", plugin.name, status)
            if refused is not None:
                break
        self.caller.end_phase(phase, refused)
        return refused

    async def run_bind(self, phase: Span, state: CycleState, pod: Pod, node: str) -> PhaseFailure | None:
        """Asks the binders in turn, below `phase`; the first that does not skip has bound the Pod, or failed."""
        for plugin in self.profile.bind:
            status = await self.caller.run_async(phase, plugin, "bind", plugin.bind, state, pod, node)
            if status is None or status.code is not Code.SKIP:
                return _refused("Bind", plugin.name, status)
        return PhaseFailure("", error("no Bind plugin took the Pod"))

    async def run_post_bind(self, parent: Span, state: CycleState, pod: Pod, node: str) -> None:
        """Tells the PostBind plugins that the Pod is bound."""
        phase = self.caller.start_phase(parent, "postBind")
        for plugin in self.profile.post_bind:
            await self.caller.run_async(phase, plugin, "postBind", plugin.post_bind, state, pod, node)
        self.caller.end_phase(phase)


def _nowhere(plugins: Sequence[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"


def _failed(point: str, plugin: str, status: Status) -> Status:
    return error(f'running {point} plugin "{plugin}": {status.message}')


def _refused(point: str, plugin: str, status: Status | None) -> PhaseFailure | None:
    """A refusal is told as it is, anything else that is no success as a failure with where it happened."""
    if status is None or status.code is Code.SUCCESS:
        return None
    return PhaseFailure(plugin, status if status.rejected else _failed(point, plugin, status))
