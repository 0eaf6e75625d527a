"""What is found by a search through bytes is what a parse finds."""

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from podtrail.otlp import Link, SpanView, Value, encode_span, frame, split
from podtrail.otlp.byte_search import (
    LINKED_TRACE,
    AttributeSearch,
    attributes_among,
    key_value,
    link_targets,
    linked_traces,
    spans_with,
)
from podtrail.otlp.columns import column_reader
from podtrail.otlp.reader import raw_span_reader
from tests.sizes import large

TRACE = b"T" * 16
KEYS = ("k8s.pod.uid", "k8s.pod.name", "n")
values: st.SearchStrategy[Value] = st.one_of(st.text(max_size=60), st.integers(-(2**63), 2**63 - 1), st.booleans())


@st.composite
def spans(draw: st.DrawFn) -> bytes:
    """Return a span of any size with any of the attributes and links."""
    return encode_span(
        trace_id=TRACE,
        span_id=draw(st.binary(min_size=8, max_size=8)),
        parent_span_id=draw(st.sampled_from([b"", b"p" * 8])),
        name=draw(st.text(max_size=8)) + "x" * draw(st.sampled_from([0, 100, 20_000])),
        start=draw(st.integers(0, 2**64 - 1)),
        end=1,
        attributes=draw(st.dictionaries(st.sampled_from(KEYS), values)),
        links=[Link(draw(st.binary(min_size=16, max_size=16)), b"s" * 8, {}) for _ in range(draw(st.integers(0, 2)))],
    )


@examples(max_examples=large(40, 100))
@given(st.lists(spans(), min_size=1, max_size=4))
def test_attributes_links_and_spans_are_those_that_a_parse_finds(raw: list[bytes]) -> None:
    framed, views = frame(raw), [SpanView(one) for one in raw]
    for key in KEYS:
        pairs = [key_value(key, view.attributes[key]) for view in views if key in view.attributes]
        assert list(AttributeSearch(key).in_spans(framed, 100)) == [pair for pair in pairs if len(pair) < 128]
        marked = [one for one in raw if key.encode() in one]
        assert [one for part in spans_with(key.encode(), framed, TRACE, 100) for one in split(part)] == marked
    targets = [link.trace_id for view in views for link in view.links]
    assert LINKED_TRACE.findall(framed) == list(linked_traces(framed, 100)) == targets
    assert link_targets(column_reader({"links"})(framed).links, 3) == list(linked_traces(framed, 3)) == targets[:3]
    for view, fields in zip(views, raw_span_reader(("attributes",))(framed), strict=True):
        assert attributes_among(fields.attributes, {b"n"}) == {k: v for k, v in view.attributes.items() if k == "n"}


def test_a_mark_in_a_trace_written_otherwise_is_found_by_parting_it() -> None:
    raw = [SpanView(encode_span(trace_id=TRACE, span_id=b"s" * 8, name=name, start=1, end=2)).raw for name in "ab"]
    turned = [one[18:] + one[:18] for one in raw]
    assert [split(part)[0] for part in spans_with(b"b", frame(turned), TRACE, 9)] == [turned[1]]
