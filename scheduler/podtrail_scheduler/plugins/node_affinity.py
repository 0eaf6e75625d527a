# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeAffinity: node selector and required node affinity filter, preferred terms score.

What the args add holds for every Pod of the profile on top of its own.
"""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.configuration.args import NodeAffinityArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.extension_points import PreFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable
from podtrail_scheduler.objects import Node, NodeSelectorTerm, Pod
from podtrail_scheduler.objects import NodeAffinity as Affinity
from podtrail_scheduler.objects.decoding import node_affinity

from .shared.scoring import shares_of_best

REFUSED = unresolvable("node(s) didn't match Pod's node affinity/selector")
ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinity:
    """Filters and scores by node labels and names."""

    name = "NodeAffinity"
    in_tree = True

    def __init__(self, handle: Handle, args: NodeAffinityArgs | None = None) -> None:
        """The plugin with its `NodeAffinityArgs`.

        Raises:
            ValueError: the added affinity makes no sense; the text has the path.
        """
        added = args.added_affinity if args is not None else None
        self._added = Affinity() if added is None else node_affinity(added)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | PreFilterResult | None:
        """Skips when nothing is asked for; a Pod for named nodes has only these looked at."""
        required = pod.affinity.node_affinity.required
        if required is None:
            return None if pod.node_selector or self._added.required else SKIP
        if not required.terms:
            return None
        names: set[str] = set()
        for term in required.terms:
            named = _named_by(term)
            if named is None:
                return None
            names |= named
        return PreFilterResult(frozenset(names)) if names else CONFLICT

    def filter_key(self, pod: Pod) -> Hashable:
        """The Pod's selector and required terms."""
        return tuple(pod.node_selector.items()), pod.affinity.node_affinity.required

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node that the selector, or all required terms, miss."""
        if not self._allowed(node.node):
            return ENFORCED
        return None if _wanted(pod, node.node) else REFUSED

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when nothing is preferred."""
        return None if pod.affinity.node_affinity.preferred or self._added.preferred else SKIP

    def score_key(self, pod: Pod) -> Hashable:
        """The Pod's preferred terms."""
        return pod.affinity.node_affinity.preferred

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The summed weight of the preferred terms that match."""
        labels, name = node.node.labels, node.name
        preferred = (*self._added.preferred, *pod.affinity.node_affinity.preferred)
        return sum(each.weight for each in preferred if each.preference.matches(labels, name))

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """The best is 100."""
        return shares_of_best(scores)

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes that come or change their labels."""
        return (
            Registration(
                ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), self._wanted_now
            ),
        )

    def _allowed(self, node: Node) -> bool:
        required = self._added.required
        return required is None or required.matches(node.labels, node.name)

    def _wanted_now(self, pod: Pod, happening: Happening) -> Hint:
        old, new = happening.old, happening.new
        assert isinstance(new, Node)
        if not self._allowed(new) or not _wanted(pod, new):
            return Hint.SKIP
        return Hint.SKIP if isinstance(old, Node) and _wanted(pod, old) else Hint.QUEUE


def _named_by(term: NodeSelectorTerm) -> frozenset[str] | None:
    """The nodes that a term's fields name, None when it names none."""
    named: frozenset[str] | None = None
    for each in term.match_fields:
        if each.key == "metadata.name" and each.operator == "In":
            values = frozenset(each.values)
            named = values if named is None else named & values
    return named


def _wanted(pod: Pod, node: Node) -> bool:
    if not pod.node_selector.items() <= node.labels.items():
        return False
    required = pod.affinity.node_affinity.required
    return required is None or required.matches(node.labels, node.name)
