"""Node affinity, Pod affinity and topology spread constraints."""

from podtrail_scheduler.objects.labels import NodeSelector
from podtrail_scheduler.objects.pod import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

from .labels import label_selector, node_selector, node_selector_term
from .reading import Json, Misshapen, inner, items, part, text, texts, whole

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(spec: Json) -> Affinity:
    """`Affinity`."""
    return Affinity(
        inner(spec, "nodeAffinity", node_affinity) or NodeAffinity(),
        inner(spec, "podAffinity", _pod_affinity) or PodAffinity(),
        inner(spec, "podAntiAffinity", _pod_affinity) or PodAffinity(),
    )


def node_affinity(spec: Json) -> NodeAffinity:
    """`NodeAffinity`, of a Pod or of the args of the plugin of that name."""
    required: NodeSelector | None = inner(spec, _REQUIRED, node_selector)
    return NodeAffinity(required, items(spec, _PREFERRED, _preferred_node))


def spread_constraint(spec: Json) -> TopologySpreadConstraint:
    """`TopologySpreadConstraint`.

    Raises:
        Misshapen: it has no `maxSkew`, or a field is of the wrong type.
    """
    skew = whole(spec, "maxSkew")
    if skew is None:
        raise Misshapen("a number of Pods is wanted, it is missing", "maxSkew")
    return TopologySpreadConstraint(
        skew,
        text(spec, "topologyKey"),
        text(spec, "whenUnsatisfiable", default="DoNotSchedule"),
        inner(spec, "labelSelector", label_selector),
        whole(spec, "minDomains"),
        text(spec, "nodeAffinityPolicy", default="Honor"),
        text(spec, "nodeTaintsPolicy", default="Ignore"),
        texts(spec, "matchLabelKeys"),
    )


def _preferred_node(term: Json) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(whole(term, "weight") or 0, node_selector_term(part(term, "preference")))


def _pod_affinity(spec: Json) -> PodAffinity:
    return PodAffinity(items(spec, _REQUIRED, _term), items(spec, _PREFERRED, _weighted))


def _term(term: Json) -> PodAffinityTerm:
    return PodAffinityTerm(
        inner(term, "labelSelector", label_selector),
        text(term, "topologyKey"),
        frozenset(texts(term, "namespaces")),
        inner(term, "namespaceSelector", label_selector),
    )


def _weighted(term: Json) -> WeightedPodAffinityTerm:
    return WeightedPodAffinityTerm(whole(term, "weight") or 0, _term(part(term, "podAffinityTerm")))
