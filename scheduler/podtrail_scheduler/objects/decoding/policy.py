"""Namespaces, disruption budgets and what selects Pods."""

from collections.abc import Callable

from podtrail_scheduler.objects.labels import LabelSelector
from podtrail_scheduler.objects.policy import Namespace, PodDisruptionBudget, PodSelecting

from .labels import label_selector
from .reading import Json, inner, labels, part, text, whole


def decode_namespace(namespace: Json) -> Namespace:
    """A Namespace of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(namespace, "metadata")
    return Namespace(
        text(metadata, "name", "metadata"),
        labels(metadata, "labels", "metadata"),
        text(metadata, "resourceVersion", "metadata"),
    )


def decode_pod_disruption_budget(budget: Json) -> PodDisruptionBudget:
    """A PodDisruptionBudget of policy/v1.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(budget, "metadata")
    status = part(budget, "status")
    return PodDisruptionBudget(
        text(metadata, "name", "metadata"),
        text(metadata, "namespace", "metadata", "default"),
        inner(part(budget, "spec"), "selector", label_selector, "spec"),
        whole(status, "disruptionsAllowed", "status") or 0,
        frozenset(part(status, "disruptedPods", "status")),
        text(metadata, "resourceVersion", "metadata"),
    )


def _labels_selector(spec: Json) -> LabelSelector | None:
    """Of Services and ReplicationControllers: labels only, and without any nothing is selected."""
    selected = labels(spec, "selector", "spec")
    return LabelSelector(selected) if selected else None


def _full_selector(spec: Json) -> LabelSelector | None:
    return inner(spec, "selector", label_selector, "spec")


def _selecting(kind: str, selector: Callable[[Json], LabelSelector | None]) -> Callable[[Json], PodSelecting]:
    def decode(found: Json) -> PodSelecting:
        metadata = part(found, "metadata")
        return PodSelecting(
            kind,
            text(metadata, "name", "metadata"),
            text(metadata, "namespace", "metadata", "default"),
            selector(part(found, "spec")),
            text(metadata, "resourceVersion", "metadata"),
        )

    decode.__doc__ = f"A {kind} of the API's JSON.\n\nRaises:\n    ValueError: with the path of what it cannot read."
    return decode


decode_service = _selecting("Service", _labels_selector)
decode_replication_controller = _selecting("ReplicationController", _labels_selector)
decode_replica_set = _selecting("ReplicaSet", _full_selector)
decode_stateful_set = _selecting("StatefulSet", _full_selector)
