# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeUnschedulable: keeps Pods off cordoned nodes unless they tolerate the taint of the same meaning."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import NO_SCHEDULE, Node, Pod, Taint
from podtrail_scheduler.queueing.events import NODE_ADD, NODE_UPDATE, Happening, Hint, Registration

CORDONED = Taint("node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
REFUSED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    """Filters by `spec.unschedulable`."""

    name = "NodeUnschedulable"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a cordoned node."""
        return None if _may_use(pod, node.node) else REFUSED

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or change."""
        return (
            Registration(NODE_ADD, _usable_now),
            Registration(NODE_UPDATE, _usable_now),
        )


def _may_use(pod: Pod, node: Node) -> bool:
    return not node.unschedulable or any(each.tolerates(CORDONED) for each in pod.tolerations)


def _usable_now(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    was_usable = isinstance(old, Node) and _may_use(pod, old)
    return Hint.QUEUE if _may_use(pod, new) and not was_usable else Hint.SKIP
