# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeAffinity: node selector and required node affinity filter, preferred terms score."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.queueing.events import NODE_ADD, NODE_UPDATE, Happening, Hint, Registration

REFUSED = unresolvable("node(s) didn't match Pod's node affinity/selector")


class NodeAffinity:
    """Filters and scores by node labels."""

    name = "NodeAffinity"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when the Pod asks for nothing."""
        return None if pod.node_selector or pod.affinity.node_affinity.required else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node that the selector or all required terms miss."""
        return None if _wanted(pod, node.node) else REFUSED

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when the Pod prefers nothing."""
        return None if pod.affinity.node_affinity.preferred else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The summed weight of the preferred terms that match."""
        labels = node.node.labels
        return sum(
            each.weight for each in pod.affinity.node_affinity.preferred if each.preference.matches(labels, node.name)
        )

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """The best is 100."""
        best = max(scores)
        return [MAX_SCORE * score // best if best else 0 for score in scores]

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or change."""
        return (
            Registration(NODE_ADD, _wanted_now),
            Registration(NODE_UPDATE, _wanted_now),
        )


def _wanted(pod: Pod, node: Node) -> bool:
    if not pod.node_selector.items() <= node.labels.items():
        return False
    required = pod.affinity.node_affinity.required
    return required is None or required.matches(node.labels, node.name)


def _wanted_now(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    was_wanted = isinstance(old, Node) and _wanted(pod, old)
    return Hint.QUEUE if _wanted(pod, new) and not was_wanted else Hint.SKIP
