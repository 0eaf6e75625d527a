"""What a plugin may use of the scheduler. The cluster as it was when the attempt began comes as arguments instead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podtrail_scheduler.client import Client
from podtrail_scheduler.nominator import Nominator
from podtrail_scheduler.objects import Pod

from .clock import Clock
from .listers import Listers
from .node_info import NodeInfo
from .status import Status
from .waiting import WaitingPod

Fits = Callable[[Pod, NodeInfo, Sequence[NodeInfo]], Status | None]


def _fits_not_yet(pod: Pod, node: NodeInfo, nodes: Sequence[NodeInfo]) -> Status | None:
    raise RuntimeError(f"asked whether {pod.key} fits {node.name} of {len(nodes)} before the profile was complete")


@dataclass
class Handle:
    """Given to each plugin that asks for it when it is made."""

    clock: Clock
    client: Client
    nodes: Callable[[], Sequence[NodeInfo]]
    listers: Listers = field(default_factory=Listers)
    """Volumes, claims, budgets, namespaces and the like."""
    nominator: Nominator = field(default_factory=Nominator)
    waiting: dict[str, WaitingPod] = field(default_factory=dict)
    """Pods that Permit has told to wait, by uid."""
    fits: Fits = _fits_not_yet
    """Whether a Pod fits a (changed) node among nodes, by all filters and without spans: for trying things out."""
