# ruff: noqa: ARG001 - a plugin is given what its extension point has, used or not
"""The plugin: who may preempt, on which nodes it is tried, and what is said about it."""

from collections.abc import Mapping, Sequence
from random import Random

from opentelemetry.trace import get_current_span

from podtrail_scheduler.configuration.args import DefaultPreemptionArgs
from podtrail_scheduler.framework.client import DISRUPTION_TARGET
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import NodeRefusal, fit_message
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.extending import ExtenderError, Extenders, Victims
from podtrail_scheduler.framework.extension_points import PostFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod

from .dry_run import DryRun
from .execution import PREEMPTION_BY_SCHEDULER, Executor
from .victims import Candidate, choose

NEVER = "Never"
NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
RUNNING = unresolvable("waiting for the preemption for this pod to be finished")
RUNNING_FOR_USERS = unresolvable("Waiting for the pods of lower priority that make room for this pod to be told to end")
NAMES_SHOWN = 10
_NOT_LOOKED_AT = unresolvable()


class DefaultPreemption:
    """PostFilter: makes room on a node by deleting Pods of lower priority."""

    name = "DefaultPreemption"
    in_tree = True

    def __init__(self, handle: Handle, args: DefaultPreemptionArgs | None = None) -> None:
        self._handle = handle
        self._args = args or DefaultPreemptionArgs()
        self._executor = Executor(handle, self.name)
        self._random = Random(self.name)  # noqa: S311 - where the search begins is no secret

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Keeps a Pod back while the deletion of its victims is being asked for; see KEP-5501 for the two texts."""
        if not self._executor.is_running(pod.uid):
            return None
        return RUNNING_FOR_USERS if self._handle.pre_enqueue_pod_status else RUNNING

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that go, so that the queue asks `pre_enqueue` again; the refusing plugins decide whether to retry."""
        if not self._handle.async_preemption:
            return ()
        return (Registration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), _leave_it_to_others),)

    async def post_filter(self, state: CycleState, pod: Pod, refusals: Mapping[str, Status]) -> PostFilterResult:
        """Nominates a node and has its victims terminate, or says why not; awaits extenders that have a say."""
        self._handle.measures.preemption_attempt()
        newest = self._handle.client.get_pod(pod.uid)
        if newest is None:
            return PostFilterResult(error(f'preemption: pod "{pod.name}" not found'), None)
        ineligible = self._ineligible(newest, refusals.get(newest.nominated_node_name, _NOT_LOOKED_AT))
        if ineligible:
            return PostFilterResult(unschedulable(f"preemption: {ineligible}"), None)
        nodes = self._handle.nodes()
        if not nodes:
            return PostFilterResult(error("preemption: no nodes available"), None)
        hopeful = [node for node in nodes if refusals.get(node.name, _NOT_LOOKED_AT).code is Code.UNSCHEDULABLE]
        where = self._start_and_number(len(hopeful))
        outcome = await self._handle.aside.work(pod.key, DryRun(self._handle, state, newest).run, hopeful, *where)
        if outcome.candidates:
            extenders = self._handle.extenders
            if extenders is not None and extenders.preempts:
                return await self._agreed(newest, outcome.candidates, extenders)
            return await self._preempt(newest, choose(outcome.candidates, self._handle.clock.now()))
        failures = [status.message for status in outcome.refusals.values() if status.code is Code.ERROR]
        if failures:
            text = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
            return PostFilterResult(error(f"preemption: {text}"), None)
        return PostFilterResult(unschedulable(f"preemption: {_not_helpful(nodes, outcome.refusals)}"), "")

    async def _agreed(self, pod: Pod, candidates: Sequence[Candidate], extenders: Extenders) -> PostFilterResult:
        """Has extenders rule out candidates and change their victims before one is picked."""
        victims = {each.node_name: Victims(each.victims, each.violations) for each in candidates}
        here = {node.name: node.pods.values() for node in self._handle.nodes()}
        try:
            left = await extenders.preempt(pod, victims, here.get)
        except ExtenderError as failed:
            return PostFilterResult(error(f"preemption: {failed}"), None)
        agreed = [Candidate(name, some.pods, some.violations) for name, some in left.items()]
        if not agreed:
            return PostFilterResult(unschedulable("preemption: no candidate node for preemption"), None)
        return await self._preempt(pod, choose(agreed, self._handle.clock.now()))

    def _ineligible(self, pod: Pod, nominated: Status) -> str:
        """Why the Pod may not preempt; `nominated` is the status of its nominated node."""
        if pod.preemption_policy == NEVER:
            return "not eligible due to preemptionPolicy=Never."
        if not pod.nominated_node_name or nominated.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        node = next((each for each in self._handle.nodes() if each.name == pod.nominated_node_name), None)
        if node is not None and any(
            other.priority < pod.priority and _terminates_by_preemption(other) for other in node.pods.values()
        ):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    def _start_and_number(self, nodes: int) -> tuple[int, int]:
        """At which node the search begins, and how many candidates are enough."""
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        number = min(max(share, self._args.min_candidate_nodes_absolute), nodes)
        return (self._random.randrange(nodes) if nodes else 0), number

    async def _preempt(self, pod: Pod, chosen: Candidate) -> PostFilterResult:
        self._handle.measures.preemption_victims(len(chosen.victims))
        if self._handle.async_preemption:
            self._executor.start(pod, chosen)
        elif (failed := await self._executor.finish(pod, chosen)) is not None:
            return PostFilterResult(error(f"preemption: {failed}"), None)
        get_current_span().add_event(
            "preemption",
            {
                "scheduler.nominated_node": chosen.node_name,
                "scheduler.victims.count": len(chosen.victims),
                "scheduler.victims.names": [victim.key for victim in chosen.victims[:NAMES_SHOWN]],
            },
            timestamp=self._handle.clock.now(),
        )
        text = (
            f"preemption: found a potential placement for pod on node {chosen.node_name}, "
            f"preempting {len(chosen.victims)} victims"
        )
        return PostFilterResult(Status(Code.SUCCESS, (text,)), chosen.node_name)


def _not_helpful(nodes: Sequence[NodeInfo], refusals: Mapping[str, Status]) -> str:
    by_status: dict[Status, list[str]] = {}
    for node in nodes:
        by_status.setdefault(refusals.get(node.name, NOT_HELPFUL), []).append(node.name)
    return fit_message(len(nodes), [NodeRefusal("", status, names) for status, names in by_status.items()])


def _terminates_by_preemption(pod: Pod) -> bool:
    status, reason, _ = pod.conditions.get(DISRUPTION_TARGET, ("", "", ""))
    return pod.deletion_timestamp is not None and (status, reason) == ("True", PREEMPTION_BY_SCHEDULER)


def _leave_it_to_others(pod: Pod, happening: Happening) -> Hint:
    return Hint.SKIP
