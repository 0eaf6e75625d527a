"""Columns say what the spans say one by one."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.otlp import SpanView, Status, encode_span, frame
from podtrail.otlp.columns import column_reader
from tests.sizes import large

FIELDS = ("parent_span_id", "flags", "name", "start_time_unix_nano", "end_time_unix_nano", "status")
read = column_reader(FIELDS)

spans = st.lists(
    st.builds(
        encode_span,
        trace_id=st.just(b"\x01" * 16),
        span_id=st.binary(min_size=8, max_size=8),
        parent_span_id=st.one_of(st.just(b""), st.binary(min_size=8, max_size=8)),
        name=st.text(max_size=5),
        start=st.integers(0, 2**64 - 1),
        end=st.integers(0, 2**64 - 1),
        flags=st.integers(0, 2**32 - 1),
        status=st.one_of(st.none(), st.builds(Status, st.integers(0, 5), st.text(max_size=5))),
        attributes=st.dictionaries(st.text(max_size=3), st.integers(-5, 5), max_size=2),
    )
)


@settings(max_examples=large(40, 100))
@given(spans)
def test_a_column_has_the_values_that_are_not_defaults_in_order(raw: Sequence[bytes]) -> None:
    columns, views = read(frame(raw)), [SpanView(span) for span in raw]
    assert list(columns.start_time_unix_nano) == [view.start for view in views if view.start]
    assert list(columns.end_time_unix_nano) == [view.end for view in views if view.end]
    assert list(columns.flags) == [view.flags for view in views if view.flags]
    assert [name.decode() for name in columns.name] == [view.name for view in views if view.name]
    assert list(columns.status.code) == [view.status.code for view in views if view.status.code]
    zeros = bytes(8)
    assert [parent for parent in columns.parent_span_id if parent != zeros] == [
        view.parent_span_id for view in views if view.parent_span_id
    ]


@settings(max_examples=large(40, 100))
@given(spans, spans)
def test_chunks_may_simply_be_joined(one: Sequence[bytes], other: Sequence[bytes]) -> None:
    joined = read(frame(one) + frame(other))
    assert list(joined.name) == list(read(frame([*one, *other])).name)


def test_an_unknown_field_is_an_error_at_once() -> None:
    with pytest.raises(KeyError):
        column_reader({"colour"})
