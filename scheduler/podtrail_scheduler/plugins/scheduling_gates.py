# ruff: noqa: ARG001 - a plugin is given what its extension point has, used or not
"""SchedulingGates: a Pod with gates is not scheduled until all are lifted."""

from collections.abc import Sequence

from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.events import TARGET_POD_UPDATE, Happening, Hint, Registration

NAME = "SchedulingGates"


class SchedulingGates:
    """Holds gated Pods back before the active queue."""

    name = NAME

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Names the gates that are left."""
        if not pod.scheduling_gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]")

    def events_to_register(self) -> Sequence[Registration]:
        """The Pod's own update."""
        return (Registration(TARGET_POD_UPDATE, _gates_gone),)


def _gates_gone(pod: Pod, happening: Happening) -> Hint:
    return Hint.SKIP if pod.scheduling_gates else Hint.QUEUE
