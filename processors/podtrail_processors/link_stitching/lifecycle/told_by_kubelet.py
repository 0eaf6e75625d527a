"""Parts that spans of the kubelet and of the container runtime tell.

The kubelet's `syncPod` has the Pod's uid; its calls to the runtime are spans in the same trace: the client's, the
kubelet's, has a child, the server's, the runtime's. The two are one part, known by the client's id. Names are those of
Kubernetes 1.37 and containerd 2.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from podtrail.otlp import SpanView, Value
from podtrail.otlp.node_words import pod_of_container, start_failure_in
from podtrail.pod_identity import POD_UID, PodEvidence, sound_uid
from podtrail_processors.link_stitching.lifecycle.part import (
    BY_CALLED,
    BY_CALLER,
    CONTAINER_CREATED,
    CONTAINER_STARTED,
    FAILED_START,
    IMAGE,
    SANDBOX,
    TERMINATED,
    TERMINATING,
    Part,
)

SYNC_MARKS: Final = (b"syncPod", b"syncTerminat")
_CALLS: Final = {
    "RunPodSandbox": SANDBOX,
    "PullImage": IMAGE,
    "CreateContainer": CONTAINER_CREATED,
    "StartContainer": CONTAINER_STARTED,
}
CALL_MARKS: Final = tuple(f"/{call}".encode() for call in _CALLS)
SANDBOX_MARK: Final = b"cri.sandbox.run"

_SYNC: Final = "syncPod"
_ENDS: Final = {"syncTerminatingPod": TERMINATING, "syncTerminatedPod": TERMINATED}
_SERVER_KIND: Final = 2
_ERROR: Final = 2
_LONGEST: Final = 500
_OF_SANDBOX: Final = "CreatePodSandbox"


class Sync(NamedTuple):
    """What a root of the kubelet's tells."""

    uid: str
    namespace: str
    name: str
    part: Part | None
    """None for a sync that went well."""


class Call(NamedTuple):
    """What a call of the runtime tells."""

    uid: str
    """"" where it does not say."""
    part: Part


def read_sync(span: SpanView) -> Sync | None:
    """Return what a `syncPod`, `syncTerminatingPod` or `syncTerminatedPod` tells; None for any other span."""
    if span.name != _SYNC and span.name not in _ENDS:
        return None
    uid = sound_uid(span.attributes.get(POD_UID))
    if not uid:
        return None
    names = [_text(span.attributes.get(key)) for key in ("k8s.namespace.name", "k8s.pod.name")]
    return Sync(uid, names[0], names[1], _part_of_sync(span))


def _part_of_sync(span: SpanView) -> Part | None:
    original = span.trace_id + span.span_id
    failed = span.status.code == _ERROR
    message = span.status.message[:_LONGEST]
    if span.name in _ENDS:
        error = (message or "failed") if failed else ""
        return Part(_ENDS[span.name], b"", span.start, span.end, original, PodEvidence.POD_UID.value, error=error)
    return failed_start(span, original, message) if failed else None


def failed_start(span: SpanView, original: bytes, message: str) -> Part:
    """Return the part that a failed `syncPod` is: which step failed for which container, and why."""
    why = start_failure_in(message)
    container = why.what if why and why.step != _OF_SANDBOX else ""
    return start_failure(span, original, why.reason if why else "", container, message)


def start_failure(
    span: SpanView, original: bytes, reason: str, container: str, message: str, rank: int = BY_CALLER
) -> Part:
    """Return the part of a start that fails for a reason: one for each reason and container."""
    attributes: dict[str, Value] = {"podtrail.pod.reason": reason} if reason else {}
    if container:
        attributes["k8s.container.name"] = container
    return Part(
        FAILED_START,
        f"{reason}/{container}".encode(),
        span.start,
        span.end,
        original,
        PodEvidence.POD_UID.value,
        rank,
        attributes,
        message or reason or "failed",
    )


def read_call(span: SpanView) -> Call | None:
    """Return what a call to the container runtime tells; None for a span that is none."""
    kind = _CALLS.get(span.name.rpartition("/")[2])
    if kind is None or "/" not in span.name:
        return None
    of_server = span.kind == _SERVER_KIND and bool(span.parent_span_id)
    attributes = dict(_told(span.attributes))
    named = pod_of_container(span.attributes.get("container.name"))
    if named:
        attributes["k8s.container.name"] = named.container
        attributes["k8s.container.restart_count"] = named.attempt
    part = Part(
        kind,
        span.trace_id + (span.parent_span_id if of_server else span.span_id),
        span.start,
        span.end,
        span.trace_id + span.span_id,
        (PodEvidence.CONTAINER_ID if named else PodEvidence.TRACE).value,
        BY_CALLED if of_server else BY_CALLER,
        attributes,
        (span.status.message[:_LONGEST] or "failed") if span.status.code == _ERROR else "",
    )
    return Call(named.uid if named else "", part)


_TOLD: Final = {
    "image.ref": "container.image.name",
    "container.image.ref": "container.image.name",
    "container.id": "container.id",
    "sandbox.id": "podtrail.sandbox.id",
}


def _told(attributes: Mapping[str, Value]) -> Mapping[str, Value]:
    return {ours: value for key, ours in _TOLD.items() if isinstance(value := attributes.get(key), str)}


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
