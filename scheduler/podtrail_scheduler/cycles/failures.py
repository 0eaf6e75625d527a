"""What becomes of a Pod whose attempt failed: back to the queue, and why into its status and an Event.

As kube-scheduler's `handleSchedulingFailure`.
"""

import logging

from podtrail_instrumentation.klog import info, structured

from podtrail_scheduler.framework.client import POD_SCHEDULED, ApiError, PodCondition
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.queue import SchedulingQueue

from .attempt import AttemptFailure, RunningAttempt


class FailureHandler:
    """Handles the failed attempts of all profiles."""

    def __init__(self, queue: SchedulingQueue, handle: Handle, logger: logging.Logger) -> None:
        self._queue = queue
        self._handle = handle
        self._logger = logger

    def handle(self, attempt: RunningAttempt, failure: AttemptFailure, profile: Handle) -> None:
        """Gives the Pod back unless it is gone or has a node; `profile` writes the Event."""
        self._log(attempt.pod, failure)
        entry, clock = attempt.entry, self._handle.clock
        entry.refused_by, entry.pending_on = failure.refused_by, failure.pending_on
        entry.message = failure.message
        pod = self._handle.client.get_pod(attempt.pod.uid)
        if pod is None or pod.node_name:
            self._queue.done(attempt.pod.uid)
            return
        entry.pod = pod
        self._queue.give_back(entry, clock.now())
        hope = pod.nominated_node_name if failure.nominated_node is None else failure.nominated_node
        if hope:
            self._handle.nominator.nominate(pod.changed(nominated_node_name=hope), hope)
        else:
            self._handle.nominator.withdraw(pod.uid)
        profile.event(pod, None, "Warning", "FailedScheduling", "Scheduling", failure.message)
        reason = "Unschedulable" if failure.result == "Unschedulable" else "SchedulerError"
        condition = PodCondition(POD_SCHEDULED, "False", reason, failure.message)
        changed = pod.conditions.get(POD_SCHEDULED) != condition[1:]
        nominated = hope if hope != pod.nominated_node_name else None
        if changed or nominated is not None:
            clock.spawn(self._patch(pod, condition if changed else None, nominated))

    async def _patch(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        try:
            await self._handle.client.patch_pod_status(pod, condition, nominated_node)
        except ApiError as refusal:
            self._logger.error("%s", structured("Error updating pod", err=str(refusal), pod=pod.key))

    def _log(self, pod: Pod, failure: AttemptFailure) -> None:
        if failure.result == "Error":
            text = structured("Error scheduling pod; retrying", err=failure.message, pod=pod.key)
            self._logger.error("%s", text)
        else:
            info(self._logger, 2, "Unable to schedule pod; no fit; waiting", pod=pod.key, err=failure.message)
