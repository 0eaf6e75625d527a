"""Requests to the API server that create something: Pods, and what Pods are made for.

The request's own span says who asked and how it was answered; only the write to etcd names what was created. The audit
id says which belong together.
"""

import re
from typing import Final, NamedTuple

from podtrail.otlp import SpanView, Value
from podtrail.pod_identity import AUDIT_ID, sound_place

_CODE: Final = "http.response.status_code"
_AGENT: Final = "user_agent.original"
_METHOD: Final = "http.request.method"
_PATHS: Final = ("url.path", "http.target")
_SERVER_KIND: Final = 2
_CREATE_SPAN: Final = "Create etcd3"
_PODS: Final = "pods"
_OWNERS: Final = "deployments|replicasets|statefulsets|daemonsets|jobs|cronjobs|controllers"
_KEY: Final = re.compile(rf"(?:/registry)?/(pods|{_OWNERS})/([^/]{{1,63}})/([^/]{{1,253}})")
_COLLECTION: Final = re.compile(
    rf"/apis?/[^?]{{1,60}}/namespaces/[^/?]{{1,63}}/(?:pods|replication{_OWNERS}|{_OWNERS})(?:\?.*)?", re.DOTALL
)
_LONGEST: Final = 300


class EtcdWrite(NamedTuple):
    """The write of a new object, by the span `Create etcd3`. Times are Unix nanoseconds by the API server's clock."""

    resource: str
    """As in the key in etcd: `pods`, `replicasets`."""
    place: str
    """`namespace/name`."""
    start: int
    end: int
    span: bytes
    """Trace and span id."""
    audit_id: str


class CreatingRequest(NamedTuple):
    """A request that is to create an object, by the API server's span of it; times as above."""

    start: int
    end: int
    span: bytes
    """Trace and span id."""
    audit_id: str
    agent: str
    """The program that asked, as it calls itself."""
    context: bytes
    """Trace and span id of the client's span, which the request is a child of or links to; it need not have come."""
    code: int | None
    """What the API server answered."""


class NamedCreation(NamedTuple):
    """What was created, and by which request: that itself, or the write to etcd where it came without it."""

    resource: str
    place: str
    start: int
    end: int
    span: bytes
    """Trace and span id."""
    agent: str
    context: bytes

    @property
    def is_pod(self) -> bool:
        """Whether it is a Pod."""
        return self.resource == _PODS


def write_in(span: SpanView) -> EtcdWrite | None:
    """Return what a span writes to etcd as new; None for any other span."""
    found = _KEY.fullmatch(_text(span.attributes.get("key"))) if span.name == _CREATE_SPAN else None
    place = sound_place(found[2], found[3]) if found else ""
    if not found or not place:
        return None
    audit_id = _text(span.attributes.get(AUDIT_ID))
    return EtcdWrite(found[1], place, span.start, span.end, span.trace_id + span.span_id, audit_id)


def creating_request(span: SpanView) -> CreatingRequest | None:
    """Return the request of a span that is to create a Pod or what Pods are made for; None for any other."""
    attributes = span.attributes
    audit_id = _text(attributes.get(AUDIT_ID))
    if span.kind != _SERVER_KIND or not audit_id or attributes.get(_METHOD, "POST") != "POST":
        return None
    if not any(_COLLECTION.fullmatch(_text(attributes.get(key))) for key in _PATHS):
        return None
    return CreatingRequest(
        span.start,
        span.end,
        span.trace_id + span.span_id,
        audit_id,
        _text(attributes.get(_AGENT)),
        _client_of(span),
        status_code_of(span),
    )


def _client_of(request: SpanView) -> bytes:
    if len(request.links) == 1 and not request.parent_span_id:
        return request.links[0].trace_id + request.links[0].span_id
    return request.trace_id + request.parent_span_id


def status_code_of(span: SpanView) -> int | None:
    """Return what the API server answered: a refusal has no error status below 500."""
    code = span.attributes.get(_CODE)
    return code if isinstance(code, int) else None


def _text(value: Value) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""
