"""Parts that somebody tells who watches the Pod (the receiver `k8s_pods`)."""

from typing import Final

from podtrail.otlp import SpanView, Value
from podtrail.otlp.pod_transition import ALL_IS_WELL, PodTransition
from podtrail.pod_identity import PodEvidence
from podtrail_processors.link_stitching.lifecycle.part import (
    BOUND,
    BY_WATCH,
    CONTAINER_EXITED,
    CONTAINER_STARTED,
    CREATED,
    DELETED,
    FINISHED,
    GATED,
    READY,
    RESOLUTION,
    TERMINATING,
    Part,
)
from podtrail_processors.link_stitching.lifecycle.told_by_kubelet import start_failure

_ONCE: Final = {
    "created": CREATED,
    "gated": GATED,
    "scheduled": BOUND,
    "ready": READY,
    "finished": FINISHED,
    "deleting": TERMINATING,
    "deleted": DELETED,
}
_OF_CONTAINERS: Final = {"started": CONTAINER_STARTED, "terminated": CONTAINER_EXITED}
_KEPT: Final = (
    "k8s.pod.scheduling_gates",
    "k8s.container.exit_code",
    "podtrail.inferred",
    "podtrail.pod.reason",
    RESOLUTION,
)


def part_of(span: SpanView, told: PodTransition) -> Part | None:
    """Return the part that a transition is; None for one that is none of a life."""
    original = span.trace_id + span.span_id
    if told.kind == "waiting":
        if told.reason in ALL_IS_WELL:
            return None
        return start_failure(span, original, told.reason, told.container, told.message, BY_WATCH)
    attributes: dict[str, Value] = {key: span.attributes[key] for key in _KEPT if key in span.attributes}
    which = b""
    kind = _ONCE.get(told.kind)
    if kind is None:
        kind = _OF_CONTAINERS.get(told.kind)
        if kind is None:
            return None
        which = f"{told.container}/{told.restarts}".encode()
        attributes |= {"k8s.container.name": told.container, "k8s.container.restart_count": told.restarts}
    failed = span.status.code == 2
    error = (span.status.message or told.reason or "failed") if failed else ""
    return Part(kind, which, span.start, span.end, original, PodEvidence.POD_UID.value, BY_WATCH, attributes, error)
