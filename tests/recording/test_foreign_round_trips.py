"""Spans written as Jaeger and Zipkin have them, by OpenTelemetry's mapping, and read again, are the same spans."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import SpanView, Status, Value, encode_span, scope_name, split
from podtrail.recording import Damage, Record, RecordingDecoder

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
START = 1_700_000_000_000_000
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = TEXT.map(lambda text: f"k.{text}")
ids = st.integers(1, 2**63 - 1)


@st.composite
def made(draw: st.DrawFn) -> dict[str, Any]:
    """Return the arguments of `encode_span`, times in whole microseconds."""
    start = START + draw(st.integers(0, 10**9))
    values: st.SearchStrategy[Value] = st.one_of(TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1))
    return {
        "trace_id": draw(ids).to_bytes(16, "big"),
        "span_id": draw(ids).to_bytes(8, "big"),
        "parent_span_id": draw(st.one_of(st.just(b""), ids.map(lambda id: id.to_bytes(8, "big")))),
        "name": draw(TEXT),
        "kind": draw(st.integers(1, 5)),
        "start": start * 1000,
        "end": (start + draw(st.integers(0, 10**9))) * 1000,
        "status": draw(st.sampled_from([Status(0, ""), Status(1, ""), Status(2, ""), Status(2, "no room")])),
        "attributes": draw(st.dictionaries(KEYS, values, max_size=4)),
    }


def tags(span: SpanView) -> dict[str, Any]:
    found = dict(span.attributes) | {"otel.scope.name": "scheduler"}
    if span.status.code:
        found["otel.status_code"] = ("OK", "ERROR")[span.status.code - 1]
    if span.status.message:
        found["otel.status_description"] = span.status.message
    return found


def as_jaeger(span: SpanView) -> dict[str, Any]:
    kinds = {str: "string", bool: "bool", int: "int64"}
    listed = {**tags(span), "span.kind": KINDS[span.kind]}
    parent = [{"refType": "CHILD_OF", "traceID": span.trace_id.hex(), "spanID": span.parent_span_id.hex()}]
    return {
        "traceID": span.trace_id.hex().lstrip("0"),
        "spanID": span.span_id.hex().lstrip("0"),
        "operationName": span.name,
        "references": parent if span.parent_span_id else [],
        "startTime": span.start // 1000,
        "duration": (span.end - span.start) // 1000,
        "tags": [{"key": key, "type": kinds[type(value)], "value": value} for key, value in listed.items()],
        "processID": "p1",
    }


def as_zipkin(span: SpanView) -> dict[str, Any]:
    kind = KINDS[span.kind].upper()
    return {
        "traceId": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "name": span.name,
        "timestamp": span.start // 1000,
        "duration": (span.end - span.start) // 1000,
        "tags": tags(span),
        **({"kind": kind} if kind != "INTERNAL" else {}),
        **({"parentId": span.parent_span_id.hex()} if span.parent_span_id else {}),
    }


def read(document: object) -> SpanView:
    decoder = RecordingDecoder("traces.json")
    (record,) = [*decoder.feed(json.dumps(document).encode()), *decoder.finish()]
    assert isinstance(record, Record), str(record) if isinstance(record, Damage) else ""
    assert not record.intake.rejected, record.intake.reason
    (group,) = record.intake.groups
    assert scope_name(group.scope) == "scheduler"
    return SpanView(split(group.spans)[0])


def told(span: SpanView) -> tuple[object, ...]:
    ids = (span.trace_id, span.span_id, span.parent_span_id)
    return (*ids, span.name, span.kind, span.start, span.end, span.status, dict(span.attributes))


@given(made())
def test_jaegers_form_and_back(span: dict[str, Any]) -> None:
    view = SpanView(encode_span(**span))
    assert told(read({"data": [{"spans": [as_jaeger(view)], "processes": {}}]})) == told(view)


@given(made())
def test_zipkins_form_and_back(span: dict[str, Any]) -> None:
    view = SpanView(encode_span(**span))
    assert told(read([as_zipkin(view)])) == told(view)
