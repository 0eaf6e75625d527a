"""Terms of Pod affinity made ready for matching: whose namespaces they mean is worked out once."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import LabelSelector, Namespace, Pod, PodAffinityTerm, WeightedPodAffinityTerm

NO_LABELS: Mapping[str, str] = {}


class Term(NamedTuple):
    """A term with the namespaces that it means; `namespace_selector` None selects no further ones."""

    selector: LabelSelector | None
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str] = NO_LABELS) -> bool:
        """Whether `pod`, in a namespace of these labels, is one of the selected Pods."""
        if pod.namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector is not None and self.selector.matches(pod.labels)

    @property
    def question(self) -> Hashable:
        """All that the answer depends on."""
        return (
            self.selector and self.selector.question,
            self.topology_key,
            self.namespaces,
            self.namespace_selector and self.namespace_selector.question,
        )


class WeightedTerm(NamedTuple):
    """A term and what each Pod that matches is worth, below zero for anti-affinity."""

    weight: int
    term: Term


def term_of(owner: Pod, term: PodAffinityTerm) -> Term:
    """The term of `owner` as it stands: its namespace selector is asked for each Pod's namespace."""
    namespaces = term.namespaces
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((owner.namespace,))
    return Term(term.label_selector, term.topology_key, namespaces, term.namespace_selector)


def terms_of(owner: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[Term, ...]:
    """The terms of `owner` as they stand."""
    return tuple(term_of(owner, each) for each in terms)


def resolved(term: Term, listers: Listers) -> Term:
    """The term with the namespaces that its selector selects now named; one that selects all stays as it is."""
    selector = term.namespace_selector
    if selector is None or selector.empty:
        return term
    selected = {each.name for each in listers.all(Namespace) if selector.matches(each.labels)}
    return term._replace(namespaces=term.namespaces | selected, namespace_selector=None)


def weighted(owner: Pod, terms: Sequence[WeightedPodAffinityTerm], sign: int) -> tuple[WeightedTerm, ...]:
    """Preferred terms of `owner` with their weights times `sign`."""
    return tuple(WeightedTerm(sign * each.weight, term_of(owner, each.term)) for each in terms)


def match_all(terms: Sequence[Term], pod: Pod) -> bool:
    """Whether there are terms and `pod` matches every one."""
    return bool(terms) and all(term.matches(pod) for term in terms)


def match_any(terms: Sequence[Term], pod: Pod) -> bool:
    """Whether `pod` matches one of the terms."""
    return any(term.matches(pod) for term in terms)


def namespace_labels(pod: Pod, listers: Listers) -> Mapping[str, str]:
    """The labels of the Pod's namespace, none when it is unknown."""
    namespace = listers.get(Namespace, pod.namespace)
    return NO_LABELS if namespace is None else namespace.labels


def pod_question(pod: Pod, labels_of_namespace: Mapping[str, str]) -> Hashable:
    """All of a Pod that the terms of other Pods ask about."""
    return pod.namespace, frozenset(pod.labels.items()), frozenset(labels_of_namespace.items())
