# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeResourcesBalancedAllocation: prefers nodes that the Pod makes more even in the use of their resources."""

from collections.abc import Hashable, Sequence
from math import sqrt

from podtrail_scheduler.configuration.args import NodeResourcesBalancedAllocationArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import Pod

from .shared.resource_allocation import ScoredResources


class BalancedAllocation:
    """Scores by how far the used shares are apart, with the Pod against without it."""

    name = "NodeResourcesBalancedAllocation"
    in_tree = True

    def __init__(self, handle: Handle, args: NodeResourcesBalancedAllocationArgs | None = None) -> None:
        self._resources = ScoredResources(
            (args or NodeResourcesBalancedAllocationArgs()).resources, handle.listers, nonzero=False
        )

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips for Pods that ask for none of the resources."""
        return None if any(self._resources.wanted(pod)) else SKIP

    def score_key(self, pod: Pod) -> Hashable:
        """What the Pod asks for of the resources."""
        return self._resources.key(pod)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """50 to 100; 75 when the Pod changes nothing."""
        wanted = self._resources.wanted(pod)
        if not any(wanted):
            return 0
        allocations = self._resources.of(wanted, node)
        after = _evenness([min(each.requested / each.allocatable, 1.0) for each in allocations])
        before = _evenness([min(each.allocated / each.allocatable, 1.0) for each in allocations])
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2


def _evenness(shares: Sequence[float]) -> int:
    """100 less the standard deviation of the shares, in hundredths."""
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = squares = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = sqrt(squares / len(shares))
    return int((1 - deviation) * float(MAX_SCORE))
