"""Parts that spans of the kubelet and of the container runtime tell.

The kubelet's `syncPod` has the Pod's uid; its calls to the runtime are spans in the same trace: the client's, the
kubelet's, has a child, the server's, the runtime's. The two are one part, known by the client's id. Names are those of
Kubernetes 1.37 and containerd 2.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from podtrail.otlp import SpanView, Value
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
from podtrail_processors.pod_identity import POD_UID, PodEvidence, sound_uid

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
_FAILURE: Final = re.compile(r'failed to "(\w{1,40})" for "([^"]{1,300})" with (\w{1,60}): ')
_LONGEST: Final = 500
_MOST_NAME_PARTS: Final = 5


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
    found = _FAILURE.search(message)
    reason, container = (found[3], found[2]) if found and found[1] != "CreatePodSandbox" else ("", "")
    if found and not reason:
        reason = found[3]
    return start_failure(span, original, reason, container, message)


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
    uid, container, number = pod_of_name(_text(span.attributes.get("container.name")), containers=True)
    if container:
        attributes["k8s.container.name"] = container
        attributes["k8s.container.restart_count"] = number
    part = Part(
        kind,
        span.trace_id + (span.parent_span_id if of_server else span.span_id),
        span.start,
        span.end,
        span.trace_id + span.span_id,
        (PodEvidence.CONTAINER_ID if uid else PodEvidence.TRACE).value,
        BY_CALLED if of_server else BY_CALLER,
        attributes,
        (span.status.message[:_LONGEST] or "failed") if span.status.code == _ERROR else "",
    )
    return Call(uid, part)


def pod_of_name(name: str, *, containers: bool) -> tuple[str, str, int]:
    """Return uid, container and attempt of a name as the kubelet gives it to a sandbox or a container; "" for another.

    `[CONTAINER_]POD_NAMESPACE_UID_ATTEMPT`: none of them may have a `_`, so that with one more it is a forged name.
    """
    parts = name.split("_", _MOST_NAME_PARTS)
    if len(parts) != (_MOST_NAME_PARTS if containers else _MOST_NAME_PARTS - 1):
        return "", "", 0
    uid, attempt = sound_uid(parts[-2]), parts[-1]
    if not uid or not attempt.isascii() or not attempt.isdecimal() or len(attempt) > 9:
        return "", "", 0
    return uid, parts[0] if containers else "", int(attempt)


def sandbox_uid(span: SpanView) -> str:
    """Return the uid of the Pod whose sandbox a span runs; "" where it does not say."""
    return pod_of_name(_text(span.attributes.get("sandbox.name")), containers=False)[0]


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
