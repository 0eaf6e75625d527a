"""Tells in Pod status and Events that PreEnqueue rejects a Pod (KEP-5501)."""

from collections.abc import Callable, Mapping

from podtrail_scheduler.framework.client import POD_SCHEDULED, PodCondition
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND

from .calls import NOT_READY_FOR_SCHEDULING, PodStatusPatch
from .dispatcher import APIDispatcher

DELAY = 5 * SECOND
"""How long a rejection must last to be told."""

EventWriter = Callable[[Pod, None, str, str, str, str], None]
"""Object, related object, type, reason, action, note."""


def by_profile(writers: Mapping[str, EventWriter]) -> EventWriter:
    """Writes in the name of the profile that a Pod asks for."""

    def write(regarding: Pod, related: None, kind: str, reason: str, action: str, note: str) -> None:
        writers[regarding.scheduler_name](regarding, related, kind, reason, action, note)

    return write


class PodStatusReporter:
    """Queues delayed patches; the dispatcher cancels and replaces them. The Event comes when a patch is sent."""

    def __init__(
        self, dispatcher: APIDispatcher, event: EventWriter, on_give_up: Callable[[str], None], *, delay: int = DELAY
    ) -> None:
        """`on_give_up` is told the uid of a Pod whose status could not be written; `delay` in nanoseconds."""
        self._dispatcher = dispatcher
        self._event = event
        self._on_give_up = on_give_up
        self._delay = delay

    def rejected(self, pod: Pod, message: str, now: int) -> None:  # noqa: ARG002, the dispatcher knows the time
        """Has the condition written and the Event emitted, if nothing changes meanwhile."""
        condition = PodCondition(POD_SCHEDULED, "False", NOT_READY_FOR_SCHEDULING, message)

        def tell() -> None:
            self._event(pod, None, "Warning", NOT_READY_FOR_SCHEDULING, "Scheduling", message)

        patch = PodStatusPatch(pod, {POD_SCHEDULED: condition}, None, tell, lambda: self._on_give_up(pod.uid))
        self._dispatcher.patch_later(patch, self._delay)

    def passed(self, pod: Pod, now: int) -> None:  # noqa: ARG002, the dispatcher knows the time
        """Cancels what is not written yet, and has what is taken away."""
        self._dispatcher.patch_later(PodStatusPatch(pod, {POD_SCHEDULED: None}), self._delay)
