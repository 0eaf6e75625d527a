"""SchedulingGates: a Pod with gates is not scheduled until all are lifted (KEP-3521)."""

from collections.abc import Sequence

from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.events import Action, ClusterEvent, Registration, Resource


class SchedulingGates:
    """Holds gated Pods back before the active queue."""

    name = "SchedulingGates"

    def __init__(self, handle: Handle, args: None = None) -> None:
        """Needs neither."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Names the gates that are left."""
        if not pod.scheduling_gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]")

    def events_to_register(self) -> Sequence[Registration]:
        """The Pod's own update that lifts the last gate."""
        return (Registration(ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),)
