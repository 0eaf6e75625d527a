"""The plugin PodTopologySpread: hard constraints filter, soft ones score."""

from collections.abc import Sequence

from podtrail_scheduler.configuration.args import PodTopologySpreadArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.shared.domain_counts import CountsByQuestion

from .constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Constraints
from .default_selector import DefaultSelectors
from .filtering import Spread, counted
from .hints import SpreadHints
from .scoring import SoftSpread, soft_spread


class PodTopologySpread:
    """Counts Pods by topology domain; counts are kept between attempts and renewed where nodes changed."""

    name = "PodTopologySpread"
    in_tree = True

    def __init__(self, handle: Handle, args: PodTopologySpreadArgs | None = None) -> None:
        self._handle = handle
        self._constraints = Constraints(args or PodTopologySpreadArgs(), DefaultSelectors(handle.listers))
        self._hard = CountsByQuestion()
        self._soft = CountsByQuestion()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips without hard constraints."""
        constraints = self._constraints.of(pod, DO_NOT_SCHEDULE)
        if not constraints:
            return SKIP
        state.write(counted(pod, nodes, constraints, self._hard))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Counts a Pod that is tried on a node."""
        state.read(Spread).count(pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Counts out a Pod that is taken off a node."""
        state.read(Spread).count(pod, removed, node, -1)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Refuses a node where the skew would grow too large."""
        return state.read(Spread).answer(node)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[Status | None]:  # noqa: ARG002
        """As `filter`, for many nodes."""
        return state.read(Spread).answers(nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips without soft constraints."""
        constraints = self._constraints.of(pod, SCHEDULE_ANYWAY)
        everywhere = self._handle.nodes()
        if not constraints or not everywhere:
            return SKIP
        all_labels = bool(pod.topology_spread) or not self._constraints.system_defaulted
        state.write(soft_spread(pod, constraints, nodes, everywhere, self._soft, all_labels=all_labels))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:  # noqa: ARG002
        """The weighed number of matching Pods around the node."""
        return state.read(SoftSpread).scores((node,))[0]

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:  # noqa: ARG002
        """As `score`, for many nodes."""
        return state.read(SoftSpread).scores(nodes)

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:  # noqa: ARG002
        """Fewer matching Pods become higher scores."""
        return state.read(SoftSpread).normalized(nodes, scores)

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that come, go or change their labels, the Pod itself, and nodes that come, go or change."""
        hints = SpreadHints(lambda pod: self._constraints.of(pod, DO_NOT_SCHEDULE))
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        itself = ActionType.UPDATE_POD_TOLERATION | ActionType.UPDATE_POD_LABEL
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, pods), hints.after_assigned_pod),
            Registration(ClusterEvent(EventResource.TARGET_POD, itself), hints.after_target_pod),
            Registration(ClusterEvent(EventResource.NODE, nodes), hints.after_node),
        )
