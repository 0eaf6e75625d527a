"""What the queue logs, in kube-scheduler's words and at its verbosities."""

import logging

from podtrail_instrumentation.klog import info, structured

from podtrail_scheduler.framework.events import Happening
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status

from .interest import Strategy

_logger = logging.getLogger("podtrail_scheduler.queueing")


def moved(entry: QueuedPod, event: str, queue: str) -> None:
    """Logs that a Pod entered the active queue or the back-off queue (`queue`: Active, Backoff) because of `event`."""
    message = "Entity moved to an internal scheduling queue"
    info(_logger, 5, message, type="pod", entity=entry.pod.key, event=event, queue=queue)


def gated(entry: QueuedPod, event: str) -> None:
    """Logs that PreEnqueue now gates a Pod that was not gated before."""
    message = "Entity moved to an internal scheduling queue, because it is gated"
    info(_logger, 5, message, type="pod", entity=entry.pod.key, event=event, queue="Unschedulable")


def given_back(entry: QueuedPod, event: str, queue: str, cycle: int, strategy: Strategy) -> None:
    """Logs that a Pod came back to `queue` from a failed attempt; `strategy` is what events meanwhile meant to it."""
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
    """Logs an error: a Pod whose attempt failed is in the queue already."""
    text = f"Pod {entry.pod.key} is already present in the queue"
    _logger.error("%s", structured("Error occurred", err=text))


def moved_by_update(entry: QueuedPod, event: str, queue: str) -> None:
    """Logs that an update of the Pod itself moved it to `queue`."""
    message = "Entity moved to an internal scheduling queue because the Pod is updated"
    key = entry.pod.key
    info(_logger, 5, message, type="pod", entity=key, pod=key, event=event, queue=queue)


def tells_who_is_not_moved() -> bool:
    """Whether it is worth calling `not_moved` for each of perhaps thousands of Pods."""
    return _logger.isEnabledFor(logging.INFO - 5)


def not_moved(entry: QueuedPod, happening: Happening) -> None:
    """Logs that `happening` leaves a Pod where it is, as no plugin that refused it answered Queue."""
    label = happening.event.label
    info(_logger, 5, "Event is not making entity schedulable", entity=entry.pod.key, event=label)


def rejected_before_queueing(entry: QueuedPod, plugin: str, status: Status) -> None:
    """Logs with which status a PreEnqueue plugin rejected a Pod."""
    text = f"{status.code.text}: {status.message}" if status.message else status.code.text
    info(_logger, 4, "Status after running PreEnqueue plugin", pod=entry.pod.key, plugin=plugin, status=text)
