# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""TaintToleration: keeps Pods off nodes with taints they do not tolerate; fewer soft taints score better."""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Node, Pod

from .shared.scoring import shares_below_worst

REFUSED = unresolvable("node(s) had untolerated taint(s)")
_HARD = (NO_SCHEDULE, NO_EXECUTE)


class TaintToleration:
    """Filters and scores by taints."""

    name = "TaintToleration"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        """`handle` and `args` are not used."""

    def filter_key(self, pod: Pod) -> Hashable:
        """The Pod's tolerations."""
        return pod.tolerations

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node with an untolerated NoSchedule or NoExecute taint."""
        return REFUSED if node.node.taints and not _tolerated(pod, node.node) else None

    def score_key(self, pod: Pod) -> Hashable:
        """The Pod's tolerations."""
        return pod.tolerations

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The number of soft taints that the Pod does not tolerate."""
        return sum(
            taint.effect == PREFER_NO_SCHEDULE and not any(each.tolerates(taint) for each in pod.tolerations)
            for taint in node.node.taints
        )

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """The node with the most taints not tolerated becomes 0, those without any 100."""
        return shares_below_worst(scores)

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or lose taints, and the Pod's own tolerations."""
        return (
            Registration(
                ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), _tolerable_now
            ),
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION)),
        )


def _tolerated(pod: Pod, node: Node) -> bool:
    return all(any(each.tolerates(taint) for each in pod.tolerations) for taint in node.taints if taint.effect in _HARD)


def _tolerable_now(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    was_tolerable = isinstance(old, Node) and _tolerated(pod, old)
    return Hint.QUEUE if _tolerated(pod, new) and not was_tolerable else Hint.SKIP
