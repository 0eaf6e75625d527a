# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodePorts: two Pods cannot have the same host port at the same address of one node."""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import ANY_ADDRESS, NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unschedulable
from podtrail_scheduler.objects import HostPort, Pod

REFUSED = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Filters by host ports."""

    name = "NodePorts"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        """`handle` and `args` are not used."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when the Pod wants no port."""
        return None if pod.host_ports else SKIP

    def filter_key(self, pod: Pod) -> Hashable:
        """The Pod's host ports."""
        return pod.host_ports

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node where one of the ports is taken."""
        return None if all(node.has_port_free(port) for port in pod.host_ports) else REFUSED

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that go, nodes that come."""
        return (
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), _frees_one),
            Registration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        )


def _frees_one(pod: Pod, happening: Happening) -> Hint:
    gone = happening.old
    assert isinstance(gone, Pod)
    if not gone.node_name and not gone.nominated_node_name:
        return Hint.SKIP
    freed = any(_conflict(ours, theirs) for ours in pod.host_ports for theirs in gone.host_ports)
    return Hint.QUEUE if freed else Hint.SKIP


def _conflict(ours: HostPort, theirs: HostPort) -> bool:
    if (ours.port, ours.protocol) != (theirs.port, theirs.protocol):
        return False
    addresses = {ours.host_ip or ANY_ADDRESS, theirs.host_ip or ANY_ADDRESS}
    return len(addresses) == 1 or ANY_ADDRESS in addresses
