"""What Filter looks up: how many Pods match in each topology domain, counted by PreFilter."""

from collections.abc import Mapping, Sequence

from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.shared.domain_counts import CountsByQuestion

from .terms import Term, match_all, pod_question, terms_of

NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
NO_ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
NO_EXISTING_ANTI_AFFINITY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


Domain = tuple[str, str]
"""A topology key and one of its values."""


class Required:
    """The required terms that an attempt has to do with, and the counts of Pods that match them.

    Counts are by (topology key, value). They are shared until a Pod is tried on or taken off: then they are copied.
    """

    __slots__ = ("_own", "affinity", "affinity_terms", "anti_affinity", "anti_affinity_terms", "existing", "labels")

    def __init__(
        self,
        affinity_terms: tuple[Term, ...],
        anti_affinity_terms: tuple[Term, ...],
        labels: Mapping[str, str],
    ) -> None:
        """`labels` are those of the namespace of the Pod that is scheduled."""
        self.affinity_terms = affinity_terms
        self.anti_affinity_terms = anti_affinity_terms
        self.labels = labels
        self.affinity: dict[Domain, int] = {}
        """Pods that match all affinity terms."""
        self.anti_affinity: dict[Domain, int] = {}
        """Pods that match an anti-affinity term."""
        self.existing: dict[Domain, int] = {}
        """Pods whose own anti-affinity means the Pod that is scheduled."""
        self._own = False

    def clone(self) -> "Required":
        """A copy that copies its counts before it changes them."""
        copy = Required(self.affinity_terms, self.anti_affinity_terms, self.labels)
        copy.affinity, copy.anti_affinity, copy.existing = self.affinity, self.anti_affinity, self.existing
        self._own = False
        return copy

    def count(self, pod: Pod, other: Pod, node: NodeInfo, sign: int) -> None:
        """Counts `other` in (1) or out (-1) on `node`, on behalf of `pod`."""
        if not self._own:
            self.affinity, self.anti_affinity = dict(self.affinity), dict(self.anti_affinity)
            self.existing, self._own = dict(self.existing), True
        if match_all(self.affinity_terms, other):
            for term in self.affinity_terms:
                _change(self.affinity, node, term, sign)
        for term in self.anti_affinity_terms:
            if term.matches(other):
                _change(self.anti_affinity, node, term, sign)
        for term in terms_of(other, other.affinity.pod_anti_affinity.required):
            if term.matches(pod, self.labels):
                _change(self.existing, node, term, sign)

    def answer(self, pod: Pod, node: NodeInfo) -> Status | None:
        """Whether `pod` may be where the node is."""
        labels = node.node.labels
        if self.affinity_terms and not self._affinity_holds(pod, labels):
            return NO_AFFINITY
        for term in self.anti_affinity_terms:
            value = labels.get(term.topology_key)
            if value is not None and self.anti_affinity.get((term.topology_key, value), 0) > 0:
                return NO_ANTI_AFFINITY
        if self.existing and any(self.existing.get(domain, 0) > 0 for domain in labels.items()):
            return NO_EXISTING_ANTI_AFFINITY
        return None

    def answers(self, pod: Pod, nodes: Sequence[NodeInfo]) -> list[Status | None]:
        """As `answer`, for many nodes."""
        labels = [node.node.labels for node in nodes]
        answers: list[Status | None] = [None] * len(nodes)
        if self.affinity_terms:
            answers = [None if self._affinity_holds(pod, each) else NO_AFFINITY for each in labels]
        if self.anti_affinity:
            for key in dict.fromkeys(term.topology_key for term in self.anti_affinity_terms):
                answers = _refused_in(self.anti_affinity, key, NO_ANTI_AFFINITY, labels, answers)
        if self.existing:
            for key in dict.fromkeys(key for key, _ in self.existing):
                answers = _refused_in(self.existing, key, NO_EXISTING_ANTI_AFFINITY, labels, answers)
        return answers

    def _affinity_holds(self, pod: Pod, labels: Mapping[str, str]) -> bool:
        """Matching Pods are in each domain, or nobody matches anywhere and this Pod is the first of its kind."""
        there = True
        for term in self.affinity_terms:
            value = labels.get(term.topology_key)
            if value is None:
                return False
            there = there and self.affinity.get((term.topology_key, value), 0) > 0
        return there or (not self.affinity and match_all(self.affinity_terms, pod))


def count_required(pod: Pod, nodes: Sequence[NodeInfo], required: Required, remembered: CountsByQuestion) -> None:
    """Fills in the counts over all `nodes`."""
    affinity, anti_affinity = required.affinity_terms, required.anti_affinity_terms
    if affinity:
        question = ("affinity", *(term.question for term in affinity))
        required.affinity = remembered.ask(question, nodes, lambda node: _matching_all(affinity, node))
    if anti_affinity:
        question = ("anti-affinity", *(term.question for term in anti_affinity))
        required.anti_affinity = remembered.ask(question, nodes, lambda node: _matching(anti_affinity, node))
    if remembered.ask("any", nodes, _any_objecting):
        question = ("existing", pod_question(pod, required.labels))
        required.existing = remembered.ask(question, nodes, lambda node: _objecting(pod, required.labels, node))


def _matching_all(terms: Sequence[Term], node: NodeInfo) -> Mapping[Domain, int]:
    counts: dict[Domain, int] = {}
    matching = sum(match_all(terms, other) for other in node.pods.values())
    if matching:
        for term in terms:
            _change(counts, node, term, matching)
    return counts


def _matching(terms: Sequence[Term], node: NodeInfo) -> Mapping[Domain, int]:
    counts: dict[Domain, int] = {}
    for other in node.pods.values():
        for term in terms:
            if term.matches(other):
                _change(counts, node, term, 1)
    return counts


def _refused_in(
    counts: Mapping[Domain, int],
    key: str,
    status: Status,
    labels: Sequence[Mapping[str, str]],
    answers: Sequence[Status | None],
) -> list[Status | None]:
    """The answers, with `status` for nodes without one yet whose domain counts any Pod."""
    domains = {value for (topology_key, value), count in counts.items() if topology_key == key and count > 0}
    return [
        answer or (status if each.get(key) in domains else None) for answer, each in zip(answers, labels, strict=True)
    ]


def _any_objecting(node: NodeInfo) -> Mapping[bool, int]:
    return {True: 1} if node.pods_with_required_anti_affinity else {}


def _objecting(pod: Pod, labels: Mapping[str, str], node: NodeInfo) -> Mapping[Domain, int]:
    counts: dict[Domain, int] = {}
    for other in node.pods_with_required_anti_affinity.values():
        for term in terms_of(other, other.affinity.pod_anti_affinity.required):
            if term.matches(pod, labels):
                _change(counts, node, term, 1)
    return counts


def _change(counts: dict[Domain, int], node: NodeInfo, term: Term, amount: int) -> None:
    """Adds `amount` to the node's domain, if it has one; domains without Pods are not there."""
    value = node.node.labels.get(term.topology_key)
    if value is not None:
        domain = term.topology_key, value
        left = counts.get(domain, 0) + amount
        if left:
            counts[domain] = left
        else:
            counts.pop(domain, None)
