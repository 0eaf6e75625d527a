"""Traces that a test file writes out, span by span, as requests would bring them."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from podtrail.otlp import (
    KINDS,
    Event,
    Group,
    Link,
    Status,
    Value,
    encode_span,
    frame,
    resource_header,
    scope_header,
)
from podtrail.testing.cases.models import SpanModel, TraceModel

_STATUS_CODES = {"unset": 0, "ok": 1, "error": 2}


def trace_id_of(name: str) -> bytes:
    """Return the id of the trace of this name."""
    return blake2b(name.encode(), digest_size=16, person=b"trace").digest()


def span_id_of(trace: str, position: int) -> bytes:
    """Return the id of a trace's span at a position; 0: its root."""
    return blake2b(f"{position}/{trace}".encode(), digest_size=8, person=b"span").digest()


def trace_groups(
    name: str, model: TraceModel, begin: int, links: Mapping[str, Link]
) -> Iterator[tuple[int, Sequence[Group]]]:
    """Yield arrival (Unix nanoseconds) and spans of each moment at which some arrive, in order.

    `begin`: of the case. `links`: by what spans name.
    """
    begin += model.at
    moments: dict[int, list[Group]] = {}
    for position, span in enumerate(model.spans):
        arrival = begin + (span.start + span.duration if span.arrives is None else span.arrives)
        moments.setdefault(arrival, []).append(_group(name, model, position, begin, links))
    yield from sorted(moments.items())


def _group(name: str, model: TraceModel, position: int, begin: int, links: Mapping[str, Link]) -> Group:
    span = model.spans[position]
    trace_id = trace_id_of(name)
    raw = encode_span(
        trace_id=trace_id,
        span_id=span_id_of(name, position),
        parent_span_id=_parent(name, model, position),
        name=span.name,
        start=begin + span.start,
        end=begin + span.start + span.duration,
        kind=KINDS.index(span.kind),
        status=Status(_STATUS_CODES[span.status], span.message),
        attributes=_values(span.attributes),
        events=[Event(begin + span.start, event, {}) for event in span.events],
        trace_state=span.trace_state,
        links=[links[target] for target in span.links],
    )
    resource = resource_header({"service.name": "test", **_values(span.resource)})
    return Group(resource, scope_header("test"), trace_id, frame([raw]), 1)


def _parent(name: str, model: TraceModel, position: int) -> bytes:
    span: SpanModel = model.spans[position]
    if span.orphan:
        return span_id_of(name, len(model.spans))
    if not position:
        return b""
    names = [one.name for one in model.spans]
    return span_id_of(name, names.index(span.parent) if span.parent else 0)


def _values(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return dict(attributes)
