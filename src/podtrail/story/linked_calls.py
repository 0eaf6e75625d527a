"""Spans of the API server and the kubelet that are linked with an attempt, as far as they are held here."""

from typing import NamedTuple

from podtrail.otlp import SpanView
from podtrail.story.lines import safe
from podtrail.story.values import number, text
from podtrail.story.words import duration


class LinkedCall(NamedTuple):
    """A span of the API server or the kubelet that is linked with an attempt."""

    kind: str
    """The link's type: `creation`, `binding`, `scheduling`."""
    name: str
    method: str
    path: str
    status: int | None
    audit_id: str
    took: int | None
    """Nanoseconds."""
    trace_id: bytes


def read_call(span: SpanView, kind: str) -> LinkedCall:
    """Return what a linked span tells."""
    attributes = span.attributes
    return LinkedCall(
        kind=kind,
        name=span.name,
        method=text(attributes.get("http.request.method")),
        path=text(attributes.get("url.path")),
        status=number(attributes.get("http.response.status_code")),
        audit_id=text(attributes.get("audit-id")),
        took=span.duration,
        trace_id=span.trace_id,
    )


def call_words(call: LinkedCall) -> str:
    """Return a call in one line: `POST /api/v1/…/binding  422  audit-id 7d3c…  3 ms`; it is harmless."""
    what = f"{call.method} {call.path}" if call.method and call.path else call.name
    parts = [safe(what, 120)]
    if call.status is not None:
        parts.append(str(call.status))
    if call.audit_id:
        parts.append(f"audit-id {safe(call.audit_id, 60)}")
    parts.append(duration(call.took))
    return "  ".join(parts)
