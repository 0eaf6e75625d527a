# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodePorts: two Pods cannot have the same host port on one node."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.events import ASSIGNED_POD_DELETE, NODE_ADD, Happening, Hint, Registration, always

REFUSED = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Filters by host ports."""

    name = "NodePorts"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when the Pod wants no port."""
        return None if pod.host_ports else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node where one of the ports is taken."""
        return REFUSED if any(port in node.ports for port in pod.host_ports) else None

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that go, nodes that come."""
        return (
            Registration(ASSIGNED_POD_DELETE, _frees_one),
            Registration(NODE_ADD, always),
        )


def _frees_one(pod: Pod, happening: Happening) -> Hint:
    assert isinstance(happening.old, Pod)
    return Hint.QUEUE if set(pod.host_ports) & set(happening.old.host_ports) else Hint.SKIP
