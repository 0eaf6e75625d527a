"""What Score looks up: what preferred terms, and required affinity of Pods that run, make a domain worth."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Pod

from .filtering import Domain
from .terms import Term, WeightedTerm, pod_question, term_of, weighted


class Worth(NamedTuple):
    """By topology key and value: the sum of the weights of all that matched there."""

    domains: Mapping[str, Mapping[str, int]]

    def of(self, nodes: Sequence[NodeInfo]) -> list[int]:
        """The sum over each node's domains."""
        labels = [node.node.labels for node in nodes]
        scores = [0] * len(nodes)
        for key, values in self.domains.items():
            scores = [
                score + values.get(each[key], 0) if key in each else score
                for score, each in zip(scores, labels, strict=True)
            ]
        return scores


class Preferences(NamedTuple):
    """The Pod's own preferred terms (weights below zero are anti-affinity) and what others' terms ask about it."""

    pod: Pod
    own: tuple[WeightedTerm, ...]
    namespace_labels: Mapping[str, str]
    hard_weight: int
    """What a required affinity term of a running Pod counts as."""

    @property
    def question(self) -> Hashable:
        """All that the worth of domains depends on besides the nodes."""
        own = tuple((weight, term.question) for weight, term in self.own)
        return "worth", pod_question(self.pod, self.namespace_labels), own

    def contribution(self, node: NodeInfo) -> Mapping[Domain, int]:
        """What the Pods of `node` make its domains worth."""
        worth: dict[Domain, int] = {}
        labels = node.node.labels
        if not labels:
            return worth
        if self.own:
            for other in node.pods.values():
                for weight, term in self.own:
                    if term.matches(other):
                        _add(worth, labels, term, weight)
        for other in node.pods_with_affinity.values():
            for weight, term in self._of_running(other):
                if term.matches(self.pod, self.namespace_labels):
                    _add(worth, labels, term, weight)
        return worth

    def _of_running(self, other: Pod) -> Sequence[WeightedTerm]:
        near, away = other.affinity.pod_affinity, other.affinity.pod_anti_affinity
        required = near.required if self.hard_weight > 0 else ()
        return (
            *(WeightedTerm(self.hard_weight, term_of(other, each)) for each in required),
            *weighted(other, near.preferred, 1),
            *weighted(other, away.preferred, -1),
        )


def any_preferring(node: NodeInfo) -> Mapping[bool, int]:
    """Something, where a Pod has terms about others."""
    return {True: 1} if node.pods_with_affinity else {}


def by_topology(sums: Mapping[Domain, int]) -> Worth:
    """The sums by topology key, then value."""
    domains: dict[str, dict[str, int]] = {}
    for (key, value), worth in sums.items():
        domains.setdefault(key, {})[value] = worth
    return Worth(domains)


def spread_out(scores: Sequence[int]) -> list[int]:
    """The scores stretched to 0 for the lowest and 100 for the highest; all 0 when they are equal."""
    lowest, highest = min(scores), max(scores)
    if lowest == highest:
        return [0] * len(scores)
    return [int(MAX_SCORE * ((score - lowest) / (highest - lowest))) for score in scores]


def _add(worth: dict[Domain, int], labels: Mapping[str, str], term: Term, weight: int) -> None:
    value = labels.get(term.topology_key)
    if value is not None:
        domain = term.topology_key, value
        worth[domain] = worth.get(domain, 0) + weight
