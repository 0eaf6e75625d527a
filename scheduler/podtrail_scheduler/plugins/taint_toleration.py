# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""TaintToleration: keeps Pods off nodes with taints they do not tolerate; fewer soft taints score better."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable
from podtrail_scheduler.objects import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Node, Pod
from podtrail_scheduler.queueing.events import NODE_ADD, NODE_UPDATE, Happening, Hint, Registration

REFUSED = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration:
    """Filters and scores by taints."""

    name = "TaintToleration"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node with an untolerated NoSchedule or NoExecute taint."""
        return None if not node.node.taints or _tolerated(pod, node.node) else REFUSED

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when there is no soft taint to count."""
        soft = (taint for node in nodes for taint in node.node.taints if taint.effect == PREFER_NO_SCHEDULE)
        return None if any(True for _ in soft) else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The number of soft taints that the Pod does not tolerate."""
        soft = [taint for taint in node.node.taints if taint.effect == PREFER_NO_SCHEDULE]
        return sum(not any(each.tolerates(taint) for each in pod.tolerations) for taint in soft)

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """None is 100, the most is 0."""
        most = max(scores)
        return [MAX_SCORE - MAX_SCORE * score // most if most else MAX_SCORE for score in scores]

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or change."""
        return (
            Registration(NODE_ADD, _tolerable_now),
            Registration(NODE_UPDATE, _tolerable_now),
        )


def _tolerated(pod: Pod, node: Node) -> bool:
    return all(
        any(each.tolerates(taint) for each in pod.tolerations)
        for taint in node.taints
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
    )


def _tolerable_now(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    was_tolerable = isinstance(old, Node) and _tolerated(pod, old)
    return Hint.QUEUE if _tolerated(pod, new) and not was_tolerable else Hint.SKIP
