"""The lazy ways to look at spans agree with the upstream class."""

from collections.abc import Collection, Iterable
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.otlp import (
    SpanFields,
    SpanView,
    Value,
    encode_span,
    frame,
    raw_span_reader,
    read_key_value,
    read_request,
    span_reader,
    split,
)
from podtrail.otlp import status_code as code_of
from tests.sizes import large

_ALL = [field.name for field in Span.DESCRIPTOR.fields]
_SCALARS = ["trace_id", "span_id", "flags", "kind", "start_time_unix_nano", "end_time_unix_nano"]


def _agree(fields: SpanFields, span: Span, view: SpanView) -> None:
    for name in _SCALARS:
        assert getattr(fields, name) == getattr(span, name)
    assert [view.trace_id, view.span_id, view.flags, view.kind, view.start, view.end] == [
        getattr(span, name) for name in _SCALARS
    ]
    assert fields.parent_span_id == span.parent_span_id
    assert view.parent_span_id == (span.parent_span_id if any(span.parent_span_id) else b"")
    assert (fields.name.decode(), fields.trace_state.decode()) == (span.name, span.trace_state)
    assert (view.name, view.trace_state) == (span.name, span.trace_state)
    assert code_of(fields.status) == view.status.code == span.status.code
    assert repr(_first_of_each_key(map(read_key_value, fields.attributes))) == repr(view.attributes)
    assert (len(fields.events), len(fields.links)) == (len(view.events), len(view.links))
    assert [(link.trace_id, link.span_id) for link in view.links] == [(k.trace_id, k.span_id) for k in span.links]


def _first_of_each_key(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    first: dict[str, Value] = {}
    for key, value in pairs:
        first.setdefault(key, value)
    return first


@settings(max_examples=large(40, 100))
@given(sent=...)
def test_reader_and_view_agree_with_the_upstream_class(sent: ExportTraceServiceRequest) -> None:
    read = raw_span_reader(_ALL)
    for group in read_request(sent.SerializeToString()).groups:
        raws = split(group.spans)
        spans = read(group.spans)
        assert len(spans) == len(raws) == group.span_count
        for raw, fields in zip(raws, spans, strict=True):
            _agree(fields, Span.FromString(raw), SpanView(raw))


@settings(max_examples=large(40, 100))
@given(names=st.sets(st.sampled_from(_SCALARS), min_size=1), spans=st.lists(st.from_type(Span), min_size=1, max_size=3))
def test_a_reader_reads_what_it_was_asked_for_and_no_more(names: Collection[str], spans: list[Span]) -> None:
    found = raw_span_reader(names)(frame(span.SerializeToString() for span in spans))
    for name in names:
        assert list(map(attrgetter(name), found)) == [getattr(span, name) for span in spans]
    with pytest.raises(AttributeError):
        _ = found[0].name


def test_a_reader_of_a_field_that_no_span_has_is_refused() -> None:
    with pytest.raises(KeyError):
        raw_span_reader(["colour"])


@pytest.mark.parametrize(("start", "end"), [(0, 5), (5, 0), (7, 6), (0, 0)])
def test_a_duration_is_unknown_without_two_times_in_order(start: int, end: int) -> None:
    raw = encode_span(trace_id=b"t" * 16, span_id=b"s" * 8, name="", start=start, end=end)
    assert SpanView(raw).duration is None


def test_authors_read_names_as_text_and_ids_as_bytes() -> None:
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="prüfen 😀", trace_state="ot=th:0")
    (read,) = span_reader({"name", "trace_state", "span_id"})(frame([span.SerializeToString()]))
    assert (read.name, read.trace_state, read.span_id) == ("prüfen 😀", "ot=th:0", b"s" * 8)
    (raw,) = raw_span_reader({"name"})(frame([span.SerializeToString()]))
    assert raw.name == "prüfen 😀".encode()
