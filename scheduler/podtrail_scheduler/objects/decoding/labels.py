"""Makes label and node selectors of their JSON."""

from podtrail_scheduler.objects.labels import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement

from .reading import Json, items, labels, text, texts


def label_selector(selector: Json) -> LabelSelector:
    """`LabelSelector`."""
    return LabelSelector(labels(selector, "matchLabels"), items(selector, "matchExpressions", _requirement))


def node_selector(selector: Json) -> NodeSelector:
    """`NodeSelector`."""
    return NodeSelector(items(selector, "nodeSelectorTerms", node_selector_term))


def node_selector_term(term: Json) -> NodeSelectorTerm:
    """`NodeSelectorTerm`."""
    return NodeSelectorTerm(items(term, "matchExpressions", _requirement), items(term, "matchFields", _requirement))


def _requirement(requirement: Json) -> Requirement:
    return Requirement(text(requirement, "key"), text(requirement, "operator"), texts(requirement, "values"))
