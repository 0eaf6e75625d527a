"""Spans of other components that belong to a Pod's story: requests to the API server, the kubelet's `syncPod`.

None of them needs to know of the scheduler; which Pod they are about is read as everywhere (`pod_identity`).
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from podtrail.otlp import SpanView
from podtrail_processors.link_stitching.prefilter import CREATION_MARK
from podtrail_processors.pod_identity import AUDIT_ID, CREATE, Sighting, sighting_of

_SYNC_NAME: Final = "syncPod"
_BINDING: Final = "binding"
_STATUS: Final = "status"
_AGENT: Final = "user_agent.original"
_CODE: Final = "http.response.status_code"
_SERVER_KIND: Final = 2


def synced_pod(span: SpanView) -> str:
    """Return the uid of the Pod that a kubelet's `syncPod` span is about; "" for any other span."""
    sighting = sighting_of(span) if span.name == _SYNC_NAME else None
    return sighting.uid if sighting else ""


def binding_of(span: SpanView) -> Sighting | None:
    """Return where and when an API server's span binds a Pod; None for any other span."""
    sighting = sighting_of(span) if span.kind == _SERVER_KIND else None
    return sighting if sighting and sighting.action == _BINDING else None


def status_write_of(span: SpanView) -> Sighting | None:
    """Return where and when a scheduler writes a Pod's status, such as the condition that says why it waits."""
    sighting = sighting_of(span) if span.kind == _SERVER_KIND else None
    return sighting if sighting and sighting.action == _STATUS and _is_scheduler(span) else None


def _is_scheduler(span: SpanView) -> bool:
    """Say whether a program named as schedulers are asks, or one that calls itself that part of it."""
    agent = span.attributes.get(_AGENT)
    return isinstance(agent, str) and (agent.partition("/")[0].endswith("scheduler") or agent.endswith("/scheduler"))


def status_code_of(span: SpanView) -> int | None:
    """Return what the API server answered: a refusal has no error status below 500."""
    code = span.attributes.get(_CODE)
    return code if isinstance(code, int) else None


class Creation(NamedTuple):
    """A request that created a Pod."""

    place: str
    at: int
    key: bytes
    """Trace and span id: the request's own, or of the write to etcd where that came without it."""


def creations_in(spans: Sequence[bytes]) -> Iterator[Creation]:
    """Yield the creations of Pods among spans of one trace: only the write to etcd names the Pod."""
    views: list[SpanView] = []
    for raw in spans:
        if CREATION_MARK not in raw:
            continue
        written = SpanView(raw)
        sighting = sighting_of(written)
        if sighting is None or sighting.action != CREATE or not sighting.place:
            continue
        views = views or [SpanView(other) for other in spans]
        request = next((view for view in views if _is_request(view, sighting.audit_id)), written)
        yield Creation(sighting.place, request.start, request.trace_id + request.span_id)


def _is_request(span: SpanView, audit_id: str) -> bool:
    return span.kind == _SERVER_KIND and bool(audit_id) and span.attributes.get(AUDIT_ID) == audit_id
