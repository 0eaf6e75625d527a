# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""DefaultPreemption: makes room for a Pod by having Pods of lower priority terminate.

On each node where that may help, all Pods of lower priority are taken away, and if then the Pod fits, as many as
possible are given back, the most important first. The node whose victims matter least is nominated.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opentelemetry.trace import get_current_span

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import Refusal, fit_message
from podtrail_scheduler.framework.extension_points import PostFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod

NAME = "DefaultPreemption"
NEVER = "Never"
NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
NAMES_SHOWN = 10


class _Candidate(NamedTuple):
    node: NodeInfo
    victims: list[Pod]
    """The most important first."""


class DefaultPreemption:
    """Runs when no node fits."""

    name = NAME

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def post_filter(self, state: CycleState, pod: Pod, refusals: Mapping[str, Status]) -> PostFilterResult:
        """Nominates a node and has its victims terminate, or says why not."""
        ineligible = self._ineligible(pod)
        if ineligible:
            return PostFilterResult(unschedulable(f"preemption: {ineligible}"), None)
        nodes = self._handle.nodes()
        candidates: list[_Candidate] = []
        reasons: dict[Status, list[str]] = {}
        for node in nodes:
            found = self._candidate(pod, node, nodes, refusals.get(node.name, NOT_HELPFUL))
            if isinstance(found, _Candidate):
                candidates.append(found)
            else:
                reasons.setdefault(found, []).append(node.name)
        if not candidates:
            text = fit_message(len(nodes), [Refusal(NAME, status, names) for status, names in reasons.items()])
            return PostFilterResult(unschedulable(f"preemption: {text}"), "")
        return self._preempt(pod, min(candidates, key=_cost))

    def _ineligible(self, pod: Pod) -> str:
        if pod.preemption_policy == NEVER:
            return "not eligible due to preemptionPolicy=Never."
        for node in self._handle.nodes():
            if node.name == pod.nominated_node_name and any(
                other.deletion_timestamp is not None and other.priority < pod.priority for other in node.pods.values()
            ):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def _candidate(self, pod: Pod, node: NodeInfo, nodes: Sequence[NodeInfo], refusal: Status) -> _Candidate | Status:
        """The victims on `node`, or why there is nothing to gain."""
        if refusal.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return NOT_HELPFUL
        lower = sorted((other for other in node.pods.values() if other.priority < pod.priority), key=_importance)
        if not lower:
            return NO_VICTIMS
        [trial] = self._handle.nominator.with_nominated(pod, [node])
        trial = trial.clone() if trial is node else trial
        supposed = [trial if other is node else other for other in nodes]
        for other in lower:
            trial.remove(other)
        status = self._handle.fits(pod, trial, supposed)
        if status is not None:
            return status
        victims = []
        for other in lower:
            trial.add(other)
            if self._handle.fits(pod, trial, supposed) is not None:
                trial.remove(other)
                victims.append(other)
        return _Candidate(node, victims)

    def _preempt(self, pod: Pod, chosen: _Candidate) -> PostFilterResult:
        for victim in chosen.victims:
            waiting = self._handle.waiting.get(victim.uid)
            if waiting is not None:
                waiting.reject(NAME, "preempted")
            elif victim.deletion_timestamp is None:
                reason = f"Preempted by pod {pod.uid} on node {chosen.node.name}"
                self._handle.client.delete_pod(victim, reason)
        for other in self._handle.nominator.on(chosen.node.name):
            if other.priority < pod.priority:
                self._handle.nominator.withdraw(other.uid)
        get_current_span().add_event(
            "preemption",
            {
                "scheduler.nominated_node": chosen.node.name,
                "scheduler.victims.count": len(chosen.victims),
                "scheduler.victims.names": [victim.key for victim in chosen.victims[:NAMES_SHOWN]],
            },
            timestamp=self._handle.clock.now(),
        )
        text = (
            f"preemption: found a potential placement for pod on node {chosen.node.name}, "
            f"preempting {len(chosen.victims)} victims"
        )
        return PostFilterResult(Status(Code.SUCCESS, (text,)), chosen.node.name)


def _importance(pod: Pod) -> tuple[int, int, str]:
    """Smallest for the most important: highest priority, then longest there."""
    return (-pod.priority, pod.creation_timestamp, pod.uid)


def _cost(candidate: _Candidate) -> tuple[int, int, int, int]:
    """Lowest highest priority of a victim, lowest sum of priorities, fewest victims, the youngest most important."""
    victims = candidate.victims
    if not victims:
        return (-(2**31), 0, 0, 0)
    return (
        victims[0].priority,
        sum(victim.priority + 2**31 for victim in victims),
        len(victims),
        -victims[0].creation_timestamp,
    )
