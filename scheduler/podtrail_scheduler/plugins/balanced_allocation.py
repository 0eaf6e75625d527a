# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeResourcesBalancedAllocation: prefers nodes whose CPU and memory are used in like shares."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.quantities import CPU, MEMORY


class BalancedAllocation:
    """Scores by how far the two shares are apart."""

    name = "NodeResourcesBalancedAllocation"

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips for Pods that ask for neither."""
        return None if pod.requests.get(CPU) or pod.requests.get(MEMORY) else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """100 less the standard deviation of the shares, in hundredths."""
        cpu = _share(pod, node, CPU)
        memory = _share(pod, node, MEMORY)
        return int((1 - abs(cpu - memory) / 2) * MAX_SCORE)


def _share(pod: Pod, node: NodeInfo, name: str) -> float:
    allocatable = node.node.allocatable.get(name, 0)
    used = node.requested.get(name, 0) + pod.requests.get(name, 0)
    return min(1.0, used / allocatable) if allocatable else 1.0
