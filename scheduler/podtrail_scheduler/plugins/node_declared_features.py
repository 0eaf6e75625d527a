# ruff: noqa: ARG001, ARG002 - a plugin is given what its extension point has, used or not
"""NodeDeclaredFeatures: a Pod that needs features of the kubelet goes where they are declared (KEP-5328)."""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable
from podtrail_scheduler.objects import Node, Pod

REFUSED = unresolvable("node(s) didn't match Pod's required features")


class NodeDeclaredFeatures:
    """Filters by `status.declaredFeatures`."""

    name = "NodeDeclaredFeatures"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        """`handle` and `args` are not used."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when the Pod needs none."""
        return None if pod.required_node_features else SKIP

    def filter_key(self, pod: Pod) -> Hashable:
        """What the Pod needs."""
        return pod.required_node_features

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node that lacks one."""
        return None if pod.required_node_features <= node.node.declared_features else REFUSED

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or declare other features, and the Pod's own change."""
        return (
            Registration(
                ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE), _declared
            ),
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE), _needs_others),
        )


def _declared(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    same = isinstance(old, Node) and old.declared_features == new.declared_features
    return Hint.SKIP if same else Hint.QUEUE


def _needs_others(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return Hint.SKIP if old.required_node_features == new.required_node_features else Hint.QUEUE
