"""What Score looks up: matching Pods by domain, weighed by how many domains there are."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import HOSTNAME, Pod
from podtrail_scheduler.plugins.domain_counts import CountsByQuestion, Domain

from .constraints import Constraint, has_keys, keys_of


class _Counted(NamedTuple):
    topology_key: str
    counts: Mapping[Domain, int]
    """By the label's value; by node name where the label is the host name."""
    weight: float
    surplus: int
    """The skew that is tolerated beyond one: it waters differences down."""


class SoftSpread(NamedTuple):
    """The soft constraints of a Pod and their counts."""

    constraints: Sequence[_Counted]
    ignored: frozenset[str]
    """Names of nodes that lack a label and are not scored."""

    def score(self, node: NodeInfo) -> int:
        """More matching Pods in the node's domains is a higher number, which `normalized` turns round."""
        if node.name in self.ignored:
            return 0
        labels = node.node.labels
        score = 0.0
        for key, counts, weight, surplus in self.constraints:
            value = labels.get(key)
            if value is not None:
                count = counts.get(node.name if key == HOSTNAME else value, 0)
                score += count * weight + surplus
        return _rounded(score)

    def normalized(self, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """100 for the node with the fewest matching Pods, 0 for nodes that are not scored."""
        ignored = self.ignored
        counting = [score for node, score in zip(nodes, scores, strict=True) if node.name not in ignored]
        highest, lowest = max(counting, default=0), min(counting, default=0)
        return [
            0
            if node.name in ignored
            else MAX_SCORE
            if highest == 0
            else MAX_SCORE * (highest + lowest - score) // highest
            for node, score in zip(nodes, scores, strict=True)
        ]


def soft_spread(
    pod: Pod,
    constraints: Sequence[Constraint],
    feasible: Sequence[NodeInfo],
    everywhere: Sequence[NodeInfo],
    remembered: CountsByQuestion,
    *,
    all_labels: bool,
) -> SoftSpread:
    """Counts Pods on the nodes of the whole cluster; with `all_labels` only on nodes that have every label."""
    scored = [node for node in feasible if not all_labels or has_keys(node.node.labels, constraints)]
    ignored = (
        frozenset(node.name for node in feasible) - {node.name for node in scored}
        if len(scored) < len(feasible)
        else frozenset[str]()
    )
    needed = constraints if all_labels else ()
    found = []
    for constraint in constraints:
        key = constraint.topology_key
        if key == HOSTNAME:
            question: tuple[object, ...] = ("node", pod.namespace, constraint.selector.question)
            counts = remembered.ask(question, everywhere, _on_node(pod, constraint))
            domains = len(scored)
        else:
            question = ("domain", keys_of(needed), constraint.question(pod))
            counts = remembered.ask(question, everywhere, _in_domain(pod, constraint, needed))
            domains = len({node.node.labels.get(key, "") for node in scored})
        found.append(_Counted(key, counts, math.log(domains + 2), constraint.max_skew - 1))
    return SoftSpread(found, ignored)


def _on_node(pod: Pod, constraint: Constraint) -> Callable[[NodeInfo], Mapping[Domain, int]]:
    return lambda node: {node.name: constraint.selector.matching_pods(node.pods, pod.namespace)}


def _in_domain(
    pod: Pod, constraint: Constraint, needed: Sequence[Constraint]
) -> Callable[[NodeInfo], Mapping[Domain, int]]:
    def contribution(node: NodeInfo) -> Mapping[Domain, int]:
        labels = node.node.labels
        if not has_keys(labels, needed) or not constraint.includes(pod, node.node):
            return {}
        return {labels.get(constraint.topology_key, ""): constraint.selector.matching_pods(node.pods, pod.namespace)}

    return contribution


def _rounded(score: float) -> int:
    """To the nearest whole number, halves up, as Go rounds what is not negative."""
    whole = math.floor(score)
    return whole + (score - whole >= 0.5)
