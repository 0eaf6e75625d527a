"""A scheduler plugin: keeps Pods to nodes of the flavour that their annotation asks for, the emptier the better."""

from collections.abc import Mapping
from typing import Any

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Pod


class Flavour:
    """Filters by a label of the node, scores by its free CPU."""

    name = "Flavour"

    def __init__(self, handle: Handle, args: Mapping[str, Any] | None) -> None:
        """Take `annotation`, the key of the Pod's annotation and of the node's label."""
        self.key = (args or {}).get("annotation", "example.com/flavour")

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuse nodes of another flavour: nothing that happens to other Pods will change that."""
        wanted = pod.annotations.get(self.key)
        if wanted and node.node.labels.get(self.key) != wanted:
            return unresolvable(f"node(s) had another {self.key}")
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Give a node more points the more of its CPU is free."""
        cpu = node.node.allocatable.get("cpu", 0)
        return 100 * (cpu - node.requested.get("cpu", 0)) // cpu if cpu else 0
