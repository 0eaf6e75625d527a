"""Carrying a preemption out: in the background, the Pod outside the queue meanwhile (KEP-4832), or at once."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from podtrail_scheduler.framework.client import DISRUPTION_TARGET, ApiError, PodCondition
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Pod

from .victims import Candidate

PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
_AT_ONCE = 16
"""Requests for one Pod (kube-scheduler's default parallelism)."""
_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Run:
    """The deletions for one Pod that are under way."""

    last: Pod | None = None
    """The last victim, once all others are dealt with."""
    holds_back: bool = False
    """Whether the queue was told that the Pod has to wait for this."""


class Executor:
    """Deletes victims in the background, and knows for which Pods that is under way."""

    def __init__(self, handle: Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._runs: dict[str, list[_Run]] = {}
        """By uid of the Pod that preempts, which may do so again while the last request is not answered yet."""

    def is_running(self, uid: str) -> bool:
        """Whether the deletions for that Pod are still being asked for; who asks keeps the Pod back then."""
        waits = False
        for run in self._runs.get(uid, ()):
            if run.last is not None and self._goes(run.last):
                continue
            waits = run.holds_back = True
        return waits

    def start(self, pod: Pod, candidate: Candidate) -> None:
        """Begins; Pods that terminate already need no request."""
        victims = [victim for victim in candidate.victims if victim.deletion_timestamp is None]
        if victims:
            run = _Run()
            self._runs.setdefault(pod.uid, []).append(run)
            self._handle.clock.spawn(self._run(run, pod, candidate.node_name, victims))

    async def finish(self, pod: Pod, candidate: Candidate) -> ApiError | None:
        """Has the victims go at once, while the scheduling cycle waits; the failure if a request had one."""
        try:
            going = [victim for victim in candidate.victims if victim.deletion_timestamp is None]
            await self._preempt_all(pod, candidate.node_name, going)
        except ApiError as refused:
            return refused
        await self._clear_nominations(pod, candidate.node_name)
        return None

    async def _run(self, run: _Run, pod: Pod, node_name: str, victims: Sequence[Pod]) -> None:
        activate = not await self._clear_nominations(pod, node_name)
        try:
            await self._preempt_all(pod, node_name, victims[:-1])
            run.last = victims[-1]
            # No event comes of a victim that was only in the scheduler's memory, so nothing else wakes the Pod.
            activate |= await self._preempt(pod, node_name, victims[-1])
        except ApiError as refused:
            _log.error("preemption for %s on node %s: %s", pod.key, node_name, refused)
            activate = True
        finally:
            left = self._runs[pod.uid]
            left.remove(run)
            if not left:
                del self._runs[pod.uid]
        # Nor of one whose end was seen before: while others were dealt with, that kept the Pod back.
        if activate or (run.holds_back and self._handle.client.get_pod(victims[-1].uid) is None):
            self._handle.activate([pod])

    def _goes(self, victim: Pod) -> bool:
        known = self._handle.client.get_pod(victim.uid)
        return known is None or known.deletion_timestamp is not None

    async def _preempt_all(self, pod: Pod, node_name: str, victims: Sequence[Pod]) -> None:
        """Has victims go, several at once. Raises ApiError, the first; no request is begun after that."""
        left, refusals = list(reversed(victims)), list[ApiError]()
        at_work = min(_AT_ONCE, len(victims))
        done = self._handle.clock.signal()

        async def work() -> None:
            nonlocal at_work
            try:
                while left and not refusals:
                    await self._preempt(pod, node_name, left.pop())
            except ApiError as refused:
                refusals.append(refused)
            finally:
                at_work -= 1
                if not at_work:
                    done.set()

        if not victims:
            return
        for _ in range(at_work):
            self._handle.clock.spawn(work())
        await done.wait()
        if refusals:
            raise refusals[0]

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
