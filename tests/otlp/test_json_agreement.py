"""OTLP JSON agrees with upstream: `opentelemetry-proto` for bytes, `opentelemetry-proto-json` for text."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import Message
from hypothesis import given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span
from opentelemetry.proto_json.collector.trace.v1 import trace_service
from opentelemetry.proto_json.common.v1 import common
from opentelemetry.proto_json.resource.v1 import resource
from opentelemetry.proto_json.trace.v1 import trace

from podtrail.otlp import Group, read_request
from podtrail.otlp.json import read_json_request, write_json_request
from tests.sizes import large


def _upstream(message: Message) -> Any:
    """Return a message as the upstream JSON class of the same name, field by field."""
    scopes = [trace_service, trace, trace.Span, common, resource]
    found: Any = next(
        getattr(scope, message.DESCRIPTOR.name) for scope in scopes if hasattr(scope, message.DESCRIPTOR.name)
    )
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is not None:
            value = [_upstream(inner) for inner in value] if field.is_repeated else _upstream(value)
        fields[field.name] = list(value) if field.is_repeated else value
    return found(**fields)


def _flat(request: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for resource_spans in request.get("resourceSpans", []):
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                yield {**resource_spans, "scopeSpans": None}, {**scope_spans, "spans": None}, span


def test_what_is_written_is_what_upstream_writes(generated: Sequence[ExportTraceServiceRequest]) -> None:
    for sent in generated:
        line = write_json_request(read_request(sent.SerializeToString()).groups)
        assert b"\n" not in line
        assert list(_flat(json.loads(line))) == list(_flat(_upstream(sent).to_dict()))


def test_what_upstream_writes_reads_as_the_protobuf_does(generated: Sequence[ExportTraceServiceRequest]) -> None:
    for sent in generated:
        assert read_json_request(_upstream(sent).to_json().encode()) == read_request(sent.SerializeToString())


def test_upstream_reads_what_is_written(generated: Sequence[ExportTraceServiceRequest]) -> None:
    for sent in generated[:1000]:
        line = write_json_request(read_request(sent.SerializeToString()).groups)
        read = trace_service.ExportTraceServiceRequest.from_json(line)
        assert read.to_dict() == json.loads(line)


def test_bad_ids_are_rejected_with_the_words_of_the_protobuf_reader() -> None:
    sent = ExportTraceServiceRequest()
    spans = sent.resource_spans.add().scope_spans.add().spans
    for trace_id, span_id in ((b"t" * 16, b"s" * 8), (b"t" * 15, b"s" * 8), (bytes(16), b"s" * 8), (b"t" * 16, b"")):
        spans.add(trace_id=trace_id, span_id=span_id)
    intake = read_json_request(_upstream(sent).to_json().encode())
    assert intake == read_request(sent.SerializeToString())
    assert intake.rejected == 3


@settings(max_examples=large(40, 100))
@given(span=...)
def test_one_span_is_the_mapping_that_upstream_has_for_it(span: Span) -> None:
    known = Span()
    known.CopyFrom(span)
    known.DiscardUnknownFields()
    framed = ScopeSpans(spans=[span]).SerializeToString()
    written = json.loads(write_json_request([Group(b"", b"", span.trace_id, framed, 1)]))
    assert written["resourceSpans"][0]["scopeSpans"] == [{"spans": [_upstream(known).to_dict()]}]
