"""What Score looks up: matching Pods by domain, weighed by how many domains there are."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import HOSTNAME, Pod
from podtrail_scheduler.plugins.shared.domain_counts import CountsByQuestion

from .constraints import Constraint, keys_of


class _Counted(NamedTuple):
    topology_key: str
    counts: Mapping[str, int]
    """By the label's value; by node name where the label is the host name."""
    weight: float
    surplus: int
    """The skew that is tolerated beyond one: it waters differences down."""


class SoftSpread(NamedTuple):
    """The soft constraints of a Pod and their counts."""

    constraints: Sequence[_Counted]
    ignored: frozenset[str]
    """Names of nodes that lack a label and are not scored."""

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        """More matching Pods in a node's domains is a higher number, which `normalized` turns round."""
        labels = [node.node.labels for node in nodes]
        sums = [0.0] * len(nodes)
        for key, counts, weight, surplus in self.constraints:
            if key == HOSTNAME:
                sums = [
                    score + (counts.get(node.name, 0) * weight + surplus) if key in each else score
                    for score, each, node in zip(sums, labels, nodes, strict=True)
                ]
            else:
                worth = {value: count * weight + surplus for value, count in counts.items()}
                sums = [
                    score + worth.get(each[key], surplus) if key in each else score
                    for score, each in zip(sums, labels, strict=True)
                ]
        # To the nearest whole number, halves up, as Go rounds what is not negative.
        scores = [(whole := int(score)) + (score - whole >= 0.5) for score in sums]
        if not self.ignored:
            return scores
        return [0 if node.name in self.ignored else score for score, node in zip(scores, nodes, strict=True)]

    def normalized(self, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """100 for the node with the fewest matching Pods, 0 for nodes that are not scored."""
        ignored = self.ignored
        counting = scores
        if ignored:
            counting = [score for node, score in zip(nodes, scores, strict=True) if node.name not in ignored]
        highest, lowest = max(counting, default=0), min(counting, default=0)
        turned = {
            score: MAX_SCORE * (highest + lowest - score) // highest if highest else MAX_SCORE for score in counting
        }
        if not ignored:
            return [turned[score] for score in scores]
        return [0 if node.name in ignored else turned[score] for node, score in zip(nodes, scores, strict=True)]


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
    needed = keys_of(constraints) if all_labels else frozenset[str]()
    scored = [node for node in feasible if needed <= node.node.labels.keys()] if needed else feasible
    ignored = (
        frozenset(node.name for node in feasible) - {node.name for node in scored}
        if len(scored) < len(feasible)
        else frozenset[str]()
    )
    found = []
    for constraint in constraints:
        key = constraint.topology_key
        if key == HOSTNAME:
            question: tuple[object, ...] = ("node", pod.namespace, constraint.selector.question)
            counts = remembered.ask(question, everywhere, _on_node(pod, constraint))
            domains = len(scored)
        else:
            question = ("domain", needed, constraint.question(pod))
            counts = remembered.ask(question, everywhere, _in_domain(pod, constraint, needed))
            domains = len({node.node.labels.get(key, "") for node in scored})
        found.append(_Counted(key, counts, math.log(domains + 2), constraint.max_skew - 1))
    return SoftSpread(found, ignored)


def _on_node(pod: Pod, constraint: Constraint) -> Callable[[NodeInfo], Mapping[str, int]]:
    return lambda node: {node.name: constraint.selector.matching_pods(node.pods, pod.namespace)}


def _in_domain(pod: Pod, constraint: Constraint, needed: frozenset[str]) -> Callable[[NodeInfo], Mapping[str, int]]:
    def contribution(node: NodeInfo) -> Mapping[str, int]:
        labels = node.node.labels
        if not needed <= labels.keys() or not constraint.includes(pod, node.node):
            return {}
        return {labels.get(constraint.topology_key, ""): constraint.selector.matching_pods(node.pods, pod.namespace)}

    return contribution
