"""The plugin InterPodAffinity: required terms filter, preferred ones and those of running Pods score."""

from collections.abc import Sequence

from podtrail_scheduler.configuration.args import InterPodAffinityArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.shared.domain_counts import CountsByQuestion

from .filtering import Required, count_required
from .hints import after_assigned_pod, after_node
from .scoring import Preferences, Worth, any_preferring, by_topology, spread_out
from .terms import WeightedTerm, namespace_labels, resolved, terms_of, weighted


class InterPodAffinity:
    """Counts Pods by topology domain; counts are kept between attempts and renewed where nodes changed."""

    name = "InterPodAffinity"
    in_tree = True

    def __init__(self, handle: Handle, args: InterPodAffinityArgs | None = None) -> None:
        self._handle = handle
        self._args = args or InterPodAffinityArgs()
        self._required = CountsByQuestion()
        self._worth = CountsByQuestion()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when neither the Pod nor any that runs has required terms that matter to it."""
        listers = self._handle.listers
        required = Required(
            tuple(resolved(each, listers) for each in terms_of(pod, pod.affinity.pod_affinity.required)),
            tuple(resolved(each, listers) for each in terms_of(pod, pod.affinity.pod_anti_affinity.required)),
            namespace_labels(pod, listers),
        )
        count_required(pod, nodes, required, self._required)
        if not required.affinity_terms and not required.anti_affinity_terms and not required.existing:
            return SKIP
        state.write(required)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Counts a Pod that is tried on a node."""
        state.read(Required).count(pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Counts out a Pod that is taken off a node."""
        state.read(Required).count(pod, removed, node, -1)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node in the wrong domain."""
        return state.read(Required).answer(pod, node)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[Status | None]:
        """As `filter`, for many nodes."""
        return state.read(Required).answers(pod, nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:  # noqa: ARG002
        """Skips when no term, of the Pod or of one that runs, makes any domain worth more or less."""
        own = self._preferred(pod)
        if not own and self._args.ignore_preferred_terms_of_existing_pods:
            return SKIP
        everywhere = self._handle.nodes()
        if not own and not self._worth.ask("any", everywhere, any_preferring):
            return SKIP
        labels = namespace_labels(pod, self._handle.listers)
        preferences = Preferences(pod, own, labels, self._args.hard_pod_affinity_weight)
        sums = self._worth.ask(preferences.question, everywhere, preferences.contribution)
        if not sums:
            return SKIP
        state.write(by_topology(sums))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:  # noqa: ARG002
        """What the node's domains are worth."""
        return state.read(Worth).of((node,))[0]

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:  # noqa: ARG002
        """As `score`, for many nodes."""
        return state.read(Worth).of(nodes)

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:  # noqa: ARG002
        """The lowest becomes 0, the highest 100."""
        return spread_out(scores)

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that come, go or change their labels, and nodes that come or change theirs."""
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        return (
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, pods), after_assigned_pod),
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL)),
            Registration(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), after_node),
        )

    def _preferred(self, pod: Pod) -> tuple[WeightedTerm, ...]:
        near, away = pod.affinity.pod_affinity.preferred, pod.affinity.pod_anti_affinity.preferred
        terms = (*weighted(pod, near, 1), *weighted(pod, away, -1))
        return tuple(each._replace(term=resolved(each.term, self._handle.listers)) for each in terms)
