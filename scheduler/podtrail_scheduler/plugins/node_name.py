# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeName: a Pod that names its node goes nowhere else."""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.extension_points import PreFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Pod

REFUSED = unresolvable("node(s) didn't match the requested node name")


class NodeName:
    """Filters by `spec.nodeName`, which an unscheduled Pod has only in trials."""

    name = "NodeName"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        """`handle` and `args` are not used."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> PreFilterResult | None:
        """Only the named node is worth a look."""
        return PreFilterResult(frozenset((pod.node_name,))) if pod.node_name else None

    def filter_key(self, pod: Pod) -> Hashable:
        """The name that the Pod gives."""
        return pod.node_name

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses every node but the named one."""
        return None if not pod.node_name or pod.node_name == node.name else REFUSED

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come."""
        return (Registration(ClusterEvent(EventResource.NODE, ActionType.ADD)),)
