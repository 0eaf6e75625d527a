# ruff: noqa: ARG001, ARG002 - a plugin is given what its extension point has, used or not
"""NodeUnschedulable: keeps Pods off cordoned nodes unless they tolerate the taint of the same meaning."""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import NO_SCHEDULE, UNSCHEDULABLE_TAINT, Node, Pod, Taint

CORDONED = Taint(UNSCHEDULABLE_TAINT, effect=NO_SCHEDULE)
REFUSED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    """Filters by `spec.unschedulable`."""

    name = "NodeUnschedulable"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        """`handle` and `args` are not used."""

    def filter_key(self, pod: Pod) -> Hashable:
        """Whether the Pod bears cordoned nodes."""
        return _bears_cordons(pod)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a cordoned node."""
        return REFUSED if node.node.unschedulable and not _bears_cordons(pod) else None

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or are uncordoned, and the Pod's own tolerations."""
        return (
            Registration(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), _uncordoned),
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION), _bears_now),
        )


def _bears_cordons(pod: Pod) -> bool:
    return any(each.tolerates(CORDONED) for each in pod.tolerations)


def _uncordoned(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    was_usable = isinstance(old, Node) and not old.unschedulable
    return Hint.QUEUE if not new.unschedulable and not was_usable else Hint.SKIP


def _bears_now(pod: Pod, happening: Happening) -> Hint:
    assert isinstance(happening.new, Pod)
    return Hint.QUEUE if _bears_cordons(happening.new) else Hint.SKIP
