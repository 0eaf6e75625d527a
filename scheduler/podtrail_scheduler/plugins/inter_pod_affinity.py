"""InterPodAffinity: required affinity and anti-affinity between Pods, both ways for anti-affinity.

PreFilter counts once per attempt where Pods match; Filter looks a node's topology values up in these counts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod, PodAffinityTerm
from podtrail_scheduler.queueing.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_UPDATE,
    Happening,
    Hint,
    Registration,
    always,
)

NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
NO_ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
NO_EXISTING_ANTI_AFFINITY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

Domain = tuple[str, str]
"""A topology key and one of its values."""


class _Counts(NamedTuple):
    affinity: tuple[Counter[str], ...]
    """For each term of the Pod, how many match in each value of its topology."""
    anti_affinity: Counter[Domain]
    existing_anti_affinity: Counter[Domain]
    first_of_its_kind: bool
    """No Pod matches any affinity term yet, but this one matches its own: it may go anywhere."""


class InterPodAffinity:
    """Filters by the Pods that are there."""

    name = "InterPodAffinity"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when neither the Pod nor any other has terms that matter."""
        wanted, unwanted = pod.affinity.pod_affinity.required, pod.affinity.pod_anti_affinity.required
        existing = _existing(pod, nodes)
        if not wanted and not unwanted and not existing:
            return SKIP
        affinity = tuple(_matching(pod, term, nodes) for term in wanted)
        anti_affinity: Counter[Domain] = Counter()
        for term in unwanted:
            anti_affinity.update({(term.topology_key, each): n for each, n in _matching(pod, term, nodes).items()})
        first = not any(affinity) and all(_matches(term, pod, pod) for term in wanted)
        state.write(_Counts(affinity, anti_affinity, existing, first))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node in the wrong domain."""
        counts = state.read(_Counts)
        labels = node.node.labels
        for term, matching in zip(pod.affinity.pod_affinity.required, counts.affinity, strict=True):
            value = labels.get(term.topology_key)
            if value is None or not (counts.first_of_its_kind or matching[value]):
                return NO_AFFINITY
        if any(counts.anti_affinity.get(domain) for domain in labels.items()):
            return NO_ANTI_AFFINITY
        if any(counts.existing_anti_affinity.get(domain) for domain in labels.items()):
            return NO_EXISTING_ANTI_AFFINITY
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that come where one is wanted or go where one is not, nodes that come or change."""
        return (
            Registration(ASSIGNED_POD_ADD, _joins),
            Registration(ASSIGNED_POD_DELETE, _leaves),
            Registration(NODE_ADD, always),
            Registration(NODE_UPDATE, always),
        )


def _matches(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Whether `other` is one that the term of `owner` is about."""
    if term.label_selector is None or other.namespace not in (term.namespaces or {owner.namespace}):
        return False
    return term.label_selector.matches(other.labels)


def _matching(pod: Pod, term: PodAffinityTerm, nodes: Sequence[NodeInfo]) -> Counter[str]:
    """How many Pods match the term in each value of its topology."""
    counts: Counter[str] = Counter()
    for node in nodes:
        value = node.node.labels.get(term.topology_key)
        if value is not None:
            matching = sum(_matches(term, pod, other) for other in node.pods.values())
            if matching:
                counts[value] += matching
    return counts


def _existing(pod: Pod, nodes: Sequence[NodeInfo]) -> Counter[Domain]:
    """Where Pods are that do not want this one near."""
    counts: Counter[Domain] = Counter()
    for node in nodes:
        for other in node.with_anti_affinity.values():
            for term in other.affinity.pod_anti_affinity.required:
                value = node.node.labels.get(term.topology_key)
                if value is not None and _matches(term, other, pod):
                    counts[term.topology_key, value] += 1
    return counts


def _joins(pod: Pod, happening: Happening) -> Hint:
    assert isinstance(happening.new, Pod)
    wanted = any(_matches(term, pod, happening.new) for term in pod.affinity.pod_affinity.required)
    return Hint.QUEUE if wanted else Hint.SKIP


def _leaves(pod: Pod, happening: Happening) -> Hint:
    other = happening.old
    assert isinstance(other, Pod)
    ours = any(_matches(term, pod, other) for term in pod.affinity.pod_anti_affinity.required)
    theirs = any(_matches(term, other, pod) for term in other.affinity.pod_anti_affinity.required)
    return Hint.QUEUE if ours or theirs else Hint.SKIP
