"""Carrying a preemption out: in the background, the Pod outside the queue meanwhile (KEP-4832), or at once."""

import logging
from collections.abc import Sequence

from podtrail_scheduler.framework.client import DISRUPTION_TARGET, ApiError, PodCondition
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Pod

from .victims import Candidate

PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
_log = logging.getLogger(__name__)


class Executor:
    """Deletes victims in the background, and knows for which Pods that is under way."""

    def __init__(self, handle: Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._last_victims: dict[str, Pod | None] = {}
        """By uid of the Pod that preempts, the last victim once all others are dealt with."""

    def is_running(self, uid: str) -> bool:
        """Whether the deletions for that Pod are still being asked for."""
        if uid not in self._last_victims:
            return False
        last = self._last_victims[uid]
        if last is None:
            return True
        victim = self._handle.client.get_pod(last.uid)
        return victim is not None and victim.deletion_timestamp is None

    def start(self, pod: Pod, candidate: Candidate) -> None:
        """Begins; Pods that terminate already need no request."""
        victims = [victim for victim in candidate.victims if victim.deletion_timestamp is None]
        if victims:
            self._last_victims[pod.uid] = None
            self._handle.clock.spawn(self._run(pod, candidate.node_name, victims))

    async def finish(self, pod: Pod, candidate: Candidate) -> ApiError | None:
        """Has the victims go at once, while the scheduling cycle waits; the failure if a request had one."""
        try:
            for victim in candidate.victims:
                if victim.deletion_timestamp is None:
                    await self._preempt(pod, candidate.node_name, victim)
        except ApiError as refused:
            return refused
        await self._clear_nominations(pod, candidate.node_name)
        return None

    async def _run(self, pod: Pod, node_name: str, victims: Sequence[Pod]) -> None:
        activate = not await self._clear_nominations(pod, node_name)
        try:
            for victim in victims[:-1]:
                await self._preempt(pod, node_name, victim)
            self._last_victims[pod.uid] = victims[-1]
            # No event comes of a victim that was only in the scheduler's memory, so nothing else wakes the Pod.
            activate |= await self._preempt(pod, node_name, victims[-1])
        except ApiError as refused:
            _log.error("preemption for %s on node %s: %s", pod.key, node_name, refused)
            activate = True
        finally:
            del self._last_victims[pod.uid]
        if activate:
            self._handle.activate([pod])

    async def _clear_nominations(self, pod: Pod, node_name: str) -> bool:
        """Pods of lower priority that hoped for the node look for another one; False when that failed."""
        done = True
        for other in self._handle.nominator.on(node_name):
            if other.priority >= pod.priority:
                continue
            try:
                await self._handle.client.patch_pod_status(other, None, "")
            except ApiError as refused:
                _log.error("clearing the nominated node of %s: %s", other.key, refused)
                done = False
            else:
                self._handle.nominator.withdraw(other.uid)
        return done

    async def _preempt(self, pod: Pod, node_name: str, victim: Pod) -> bool:
        """Has one victim go; True when no request was needed. Raises ApiError."""
        waiting = self._handle.waiting.get(victim.uid)
        in_memory = waiting is not None and waiting.preempt(self._plugin, "preempted")
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        if in_memory:
            note += " (in kube-scheduler memory)."
        else:
            try:
                await self._delete(pod, victim)
            except ApiError as refused:
                if refused.reason == "NotFound":
                    return False
                raise
        self._handle.event(victim, pod, "Normal", "Preempted", "Preempting", note)
        return in_memory

    async def _delete(self, pod: Pod, victim: Pod) -> None:
        message = f"{pod.scheduler_name}: preempting to accommodate a higher priority pod"
        condition = PodCondition(DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, message)
        if victim.conditions.get(condition.type) != condition[1:]:
            await self._handle.client.patch_pod_status(victim, condition, None)
        await self._handle.client.delete_pod(victim)
