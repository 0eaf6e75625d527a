"""What the queue logs, in kube-scheduler's words and at its verbosities."""

import logging

from podtrail_instrumentation.klog import info, structured

from podtrail_scheduler.framework.events import Happening
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status

from .interest import Strategy

_logger = logging.getLogger("podtrail_scheduler.queueing")


def moved(entry: QueuedPod, event: str, queue: str) -> None:
    """A Pod is Active, or in Backoff."""
    message = "Entity moved to an internal scheduling queue"
    info(_logger, 5, message, type="pod", entity=entry.pod.key, event=event, queue=queue)


def gated(entry: QueuedPod, event: str) -> None:
    """PreEnqueue holds a Pod back that was not held back before."""
    message = "Entity moved to an internal scheduling queue, because it is gated"
    info(_logger, 5, message, type="pod", entity=entry.pod.key, event=event, queue="Unschedulable")


def given_back(entry: QueuedPod, event: str, queue: str, cycle: int, strategy: Strategy) -> None:
    """An attempt failed."""
    values = {
        "pod": entry.pod.key,
        "event": event,
        "queue": queue,
        "schedulingCycle": cycle,
        "hint": int(strategy),
        "unschedulable plugins": {plugin: {} for plugin in sorted(entry.rejectors)},
    }
    info(_logger, 3, "Pod moved to an internal scheduling queue", **values)


def present_already(entry: QueuedPod) -> None:
    """A Pod whose attempt failed had been queued again meanwhile."""
    text = f"Pod {entry.pod.key} is already present in the queue"
    _logger.error("%s", structured("Error occurred", err=text))


def moved_by_update(entry: QueuedPod, event: str, queue: str) -> None:
    """A change of the Pod itself helped."""
    message = "Entity moved to an internal scheduling queue because the Pod is updated"
    key = entry.pod.key
    info(_logger, 5, message, type="pod", entity=key, pod=key, event=event, queue=queue)


def tells_who_is_not_moved() -> bool:
    """Whether it is worth calling `not_moved` for each of perhaps thousands of Pods."""
    return _logger.isEnabledFor(logging.INFO - 5)


def not_moved(entry: QueuedPod, happening: Happening) -> None:
    """No plugin is hopeful."""
    label = happening.event.label
    info(_logger, 5, "Event is not making entity schedulable", entity=entry.pod.key, event=label)


def rejected_before_queueing(entry: QueuedPod, plugin: str, status: Status) -> None:
    """PreEnqueue rejected a Pod."""
    text = f"{status.code.text}: {status.message}" if status.message else status.code.text
    info(_logger, 4, "Status after running PreEnqueue plugin", pod=entry.pod.key, plugin=plugin, status=text)
