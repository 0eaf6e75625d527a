# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeName: a Pod that names its node in a field selector goes nowhere else."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.queueing.events import NODE_ADD, Happening, Hint, Registration

REFUSED = unresolvable("node(s) didn't match the requested node name")


class NodeName:
    """Filters by `spec.nodeName`, which an unscheduled Pod has only in trials."""

    name = "NodeName"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses every node but the named one."""
        return None if not pod.node_name or pod.node_name == node.name else REFUSED

    def events_to_register(self) -> Sequence[Registration]:
        """The node that comes."""
        return (Registration(NODE_ADD, _is_the_one),)


def _is_the_one(pod: Pod, happening: Happening) -> Hint:
    assert isinstance(happening.new, Node)
    return Hint.QUEUE if happening.new.name == pod.node_name else Hint.SKIP
