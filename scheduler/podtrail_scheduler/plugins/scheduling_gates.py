# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""SchedulingGates: a Pod with gates is not scheduled until all are lifted (KEP-3521)."""

from collections.abc import Sequence

from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Pod

GATED = "Scheduling is blocked due to non-empty scheduling gates"
"""The API server's words in the condition of a gated Pod: equal ones are not written twice (KEP-5501)."""


class SchedulingGates:
    """Holds gated Pods back before the active queue."""

    name = "SchedulingGates"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        self._handle = handle

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Names the gates that are left; where refusals are written into the status, as the API server has written."""
        if not pod.scheduling_gates:
            return None
        if self._handle.pre_enqueue_pod_status:
            return unresolvable(GATED)
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]")

    def events_to_register(self) -> Sequence[Registration]:
        """The Pod's own update that lifts the last gate."""
        return (
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),
        )
