"""What goes in comes out: requests taken apart and written again."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from google.protobuf.message import Message
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.otlp import Intake, frame, read_request, split, write_request
from tests.sizes import large

Flat = list[tuple[bytes, bytes, bytes]]

_MARK = b"\xca\xbb\x01\x07foreign"
"""Field 3001 with seven bytes."""


@settings(max_examples=large(40, 100))
@given(sent=...)
def test_a_canonical_request_comes_out_byte_for_byte(sent: ExportTraceServiceRequest) -> None:
    for resource_spans in sent.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            assume(scope_spans.spans)
    raw = sent.SerializeToString()
    intake = read_request(raw)
    headers = [[(r.resource, r.schema_url, s.scope, s.schema_url) for s in r.scope_spans] for r in sent.resource_spans]
    assume(not any(a == b for scopes in headers for a, b in pairwise(scopes)))
    assume(not any(a.resource == b.resource for a, b in pairwise(sent.resource_spans)))
    assert (intake.rejected, intake.reason) == (0, "")
    assert write_request(intake.groups) == raw


def test_every_span_keeps_its_bytes_its_headers_and_its_place(
    generated: Sequence[ExportTraceServiceRequest], flat: Callable[[bytes], Flat]
) -> None:
    for sent in generated:
        raw = sent.SerializeToString()
        assert flat(write_request(read_request(raw).groups)) == flat(raw)


@settings(max_examples=large(40, 100))
@given(sent=...)
def test_a_group_is_a_run_of_one_trace_under_one_header(
    sent: ExportTraceServiceRequest, flat: Callable[[bytes], Flat]
) -> None:
    raw = sent.SerializeToString()
    groups = read_request(raw).groups
    assert [(g.resource, g.scope, span) for g in groups for span in split(g.spans)] == flat(raw)
    for group in groups:
        spans = split(group.spans)
        assert len(spans) == group.span_count
        assert {Span.FromString(span).trace_id for span in spans} == {group.trace_id}
        assert frame(spans) == group.spans


@given(sizes=st.lists(st.sampled_from([0, 50, 99, 100, 101, 300, 16_350, 16_384, 70_000]), min_size=1, max_size=8))
def test_spans_of_any_size_stand_side_by_side(sizes: list[int], flat: Callable[[bytes], Flat]) -> None:
    sent = ExportTraceServiceRequest()
    spans = sent.resource_spans.add().scope_spans.add().spans
    for number, size in enumerate(sizes):
        spans.add(trace_id=bytes([number // 2 + 1]) * 16, span_id=b"spanspan", name="n" * size)
    raw = sent.SerializeToString()
    intake = read_request(raw)
    assert write_request(intake.groups) == raw
    assert len(intake.groups) == (len(sizes) + 1) // 2


def test_an_interleaved_trace_keeps_its_order_in_groups_of_its_own() -> None:
    sent = ExportTraceServiceRequest()
    spans = sent.resource_spans.add().scope_spans.add().spans
    for number, trace in enumerate((1, 2, 1, 1, 2)):
        spans.add(trace_id=bytes([trace]) * 16, span_id=bytes([number + 1]) * 8)
    groups = read_request(sent.SerializeToString()).groups
    assert [(group.trace_id[0], group.span_count) for group in groups] == [(1, 1), (2, 1), (1, 2), (2, 1)]
    assert [Span.FromString(raw).span_id[0] for group in groups for raw in split(group.spans)] == [1, 2, 3, 4, 5]


def _mark(message: Message) -> int:
    """Put a field that nobody knows into a message and all within it; return how many."""
    marked = 1
    for field, value in message.ListFields():
        if field.message_type is not None:
            marked += sum(map(_mark, value if field.is_repeated else [value]))
    message.MergeFromString(_MARK)
    return marked


def test_unknown_fields_survive_at_every_level(
    generated: Sequence[ExportTraceServiceRequest], flat: Callable[[bytes], Flat]
) -> None:
    for original in generated[:1000]:
        sent = ExportTraceServiceRequest()
        sent.CopyFrom(original)
        marked = sum(map(_mark, sent.resource_spans))
        raw = sent.SerializeToString()
        groups = read_request(raw).groups
        assert flat(write_request(groups)) == flat(raw)
        assert raw.count(_MARK) == marked
        headers = {(group.resource, group.scope) for group in groups}
        assert all(_MARK in resource and _MARK in scope for resource, scope in headers)


def test_what_holds_no_span_makes_no_group() -> None:
    sent = ExportTraceServiceRequest()
    sent.resource_spans.add(schema_url="empty")
    sent.resource_spans.add().scope_spans.add(schema_url="empty too")
    assert read_request(sent.SerializeToString()) == Intake([], 0, "")
    assert read_request(b"") == Intake([], 0, "")


@settings(max_examples=large(40, 100))
@given(sent=...)
def test_an_empty_resource_or_scope_is_told_from_none(
    sent: ExportTraceServiceRequest, flat: Callable[[bytes], Flat]
) -> None:
    for resource_spans in sent.resource_spans:
        resource_spans.resource.Clear()
        resource_spans.resource.SetInParent()
        for scope_spans in resource_spans.scope_spans:
            scope_spans.scope.Clear()
            scope_spans.scope.SetInParent()
    raw = sent.SerializeToString()
    assert flat(write_request(read_request(raw).groups)) == flat(raw)


def test_messages_are_told_apart_by_their_resource_even_where_it_says_nothing() -> None:
    sent = ExportTraceServiceRequest()
    for _ in range(2):
        scopes = sent.resource_spans.add().scope_spans
        for _ in range(2):
            scopes.add(spans=[Span(trace_id=b"t" * 16, span_id=b"s" * 8)])
    one, same, other, _ = read_request(sent.SerializeToString()).groups
    assert one.resource == other.resource == b""
    assert one.resource is same.resource
    assert one.resource is not other.resource
