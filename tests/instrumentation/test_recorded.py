"""Recorded spans: what the SDK's own encoder makes of them, and what ours does, is the same."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.util.types import AttributeValue
from podtrail_instrumentation import provider_around, start
from podtrail_instrumentation.encoding import encode

NANOSECONDS = st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(allow_nan=False)
VALUE: st.SearchStrategy[AttributeValue] = st.one_of(
    TEXT, st.booleans(), NUMBER, REAL, st.lists(TEXT), st.lists(NUMBER), st.lists(REAL), st.lists(st.booleans())
)
ATTRIBUTES = st.dictionaries(TEXT.filter(bool), VALUE, max_size=4)
STATUS = st.one_of(
    st.just(Status(StatusCode.UNSET)),
    st.just(Status(StatusCode.OK)),
    TEXT.map(lambda text: Status(StatusCode.ERROR, text)),
)


def request(body: bytes) -> ExportTraceServiceRequest:
    """The request with the attributes of each span by key: their order means nothing."""
    message = ExportTraceServiceRequest.FromString(body)
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                span.attributes.sort(key=lambda pair: pair.key)
    return message


@given(ATTRIBUTES, ATTRIBUTES, ATTRIBUTES, STATUS, st.sampled_from(SpanKind), NANOSECONDS, NANOSECONDS)
def test_our_encoding_says_what_the_sdks_says(
    first: Mapping[str, AttributeValue],
    later: Mapping[str, AttributeValue],
    of_event: Mapping[str, AttributeValue],
    status: Status,
    kind: SpanKind,
    began: int,
    ended: int,
) -> None:
    exporter = InMemorySpanExporter()
    tracer = provider_around(SimpleSpanProcessor(exporter), Resource({"service.name": "x"})).get_tracer("a", "1")
    cause = SpanContext(5, 6, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    root = tracer.start_span(
        "SchedulePod", Context(), kind=kind, attributes=first, links=[Link(cause, of_event)], start_time=began
    )
    root.set_attributes(later)
    root.add_event("plugin rejected", of_event, ended)
    root.set_status(status)
    tracer.start_span("somebody else's", set_span_in_context(root), start_time=began).end(ended)
    root.end(ended)
    spans = exporter.get_finished_spans()
    ours = request(encode(spans))
    theirs = request(encode_spans(spans).SerializeToString())
    by_id = {span.span_id: span for part in ours.resource_spans for scope in part.scope_spans for span in scope.spans}
    [wanted] = theirs.resource_spans
    assert by_id == {span.span_id: span for span in wanted.scope_spans[0].spans}
    assert {part.resource.SerializeToString() for part in ours.resource_spans} == {wanted.resource.SerializeToString()}
    scopes = {scope.scope.SerializeToString() for part in ours.resource_spans for scope in part.scope_spans}
    assert scopes == {wanted.scope_spans[0].scope.SerializeToString()}


def test_a_value_that_is_true_is_not_the_text_true_nor_one() -> None:
    exporter = InMemorySpanExporter()
    tracer = provider_around(SimpleSpanProcessor(exporter), Resource({})).get_tracer("a")
    tracer.start_span("a", Context(), attributes={"x": True, "y": 1, "z": "True"}).end()
    tracer.start_span("a", Context(), attributes={"x": 1, "y": "True", "z": True}).end()
    spans = exporter.get_finished_spans()
    assert request(encode(spans)) == request(encode_spans(spans).SerializeToString())


def test_the_first_end_counts_and_what_is_ended_records_no_more() -> None:
    exporter = InMemorySpanExporter()
    tracer = provider_around(SimpleSpanProcessor(exporter), Resource({})).get_tracer("a")
    span = tracer.start_span("a", Context(), start_time=1)
    assert span.is_recording()
    span.end(2)
    span.end(3)
    assert not span.is_recording()
    assert [each.end_time for each in exporter.get_finished_spans()] == [2]


def test_a_span_that_somebody_else_starts_within_a_phase_is_its_child() -> None:
    exporter = InMemorySpanExporter()
    tracer = provider_around(SimpleSpanProcessor(exporter), Resource({})).get_tracer("a")
    root = start("root", clock=lambda: 7, tracer=tracer)
    phase = root.start("filter")
    with phase.active():
        tracer.start_span("a plugin's own").end()
    phase.end(0)
    root.end(10**12)
    own, child, whole = exporter.get_finished_spans()
    assert own.parent == child.context
    assert child.parent == whole.context
    assert own.context is not None
    assert whole.context is not None
    assert own.context.trace_id == whole.context.trace_id
