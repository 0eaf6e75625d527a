"""Enrichment by appending equals doing it with the upstream classes."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from podtrail.otlp import (
    Event,
    Link,
    SpanView,
    Status,
    Value,
    annotate_links,
    append_attributes,
    append_links,
    encode_span,
    resource_attributes,
    resource_header,
    scope_attributes,
    scope_header,
    scope_name,
    set_scope_attributes,
)
from tests.sizes import large

_KEYS = st.sampled_from(["", "SchedulePod", "zażółć 🚀", "new", "k8s.pod.uid"])
_LEAVES = (
    st.none()
    | st.text(max_size=3)
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=3)
)
_VALUES: st.SearchStrategy[Value] = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=2), max_leaves=4
)
_ATTRIBUTES = st.dictionaries(_KEYS, _VALUES, max_size=3)
_LINKS = st.lists(
    st.builds(
        Link,
        trace_id=st.sampled_from([b"t" * 16, b"u" * 16]),
        span_id=st.just(b"s" * 8),
        attributes=_ATTRIBUTES,
        trace_state=st.sampled_from(["", "a=b"]),
        flags=st.sampled_from([0, 1, (1 << 32) - 1]),
    ),
    max_size=3,
)


def _any_value(value: Value) -> AnyValue:
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=map(_any_value, value)))
    return AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key=k, value=_any_value(v)) for k, v in value.items()]))


def _set(attributes: Any, added: Mapping[str, Value]) -> None:
    """Set attributes with the upstream classes: what has one of these keys goes, the new ones come last."""
    kept = [pair for pair in attributes if pair.key not in added]
    del attributes[:]
    attributes.extend(kept)
    attributes.extend(KeyValue(key=key, value=_any_value(value)) for key, value in added.items())


@settings(max_examples=large(40, 100))
@given(span=..., attributes=_ATTRIBUTES)
def test_appended_attributes_replace_those_of_their_keys(span: Span, attributes: dict[str, Value]) -> None:
    raw = span.SerializeToString()
    edited = Span.FromString(append_attributes(raw, attributes))
    _set(span.attributes, attributes)
    assert edited.SerializeToString() == span.SerializeToString()


@settings(max_examples=large(30, 100))
@given(span=..., attributes=_ATTRIBUTES)
def test_attributes_appended_twice_stand_once(span: Span, attributes: dict[str, Value]) -> None:
    once = append_attributes(span.SerializeToString(), attributes)
    twice = append_attributes(once, attributes)
    assert Span.FromString(twice).SerializeToString() == Span.FromString(once).SerializeToString()
    assert {key: SpanView(twice).attributes[key] for key in attributes} == attributes


@settings(max_examples=large(30, 100))
@given(span=..., links=_LINKS)
def test_links_are_appended_behind_those_there(span: Span, links: list[Link]) -> None:
    edited = append_links(span.SerializeToString(), links)
    assert SpanView(edited).links[len(span.links) :] == links
    without = Span.FromString(edited)
    del without.links[len(span.links) :]
    assert without.SerializeToString() == span.SerializeToString()


@settings(max_examples=large(40, 100))
@given(span=..., added=st.lists(_ATTRIBUTES, max_size=2))
def test_links_are_annotated_by_position(span: Span, added: list[dict[str, Value]]) -> None:
    by_position = dict(list(enumerate(added))[: len(span.links)])
    edited = annotate_links(span.SerializeToString(), by_position)
    for position, attributes in by_position.items():
        _set(span.links[position].attributes, attributes)
    assert edited == span.SerializeToString()


def test_a_link_that_is_not_there_cannot_be_annotated() -> None:
    with pytest.raises(IndexError):
        annotate_links(b"", {0: {"a": 1}})


@settings(max_examples=large(30, 100))
@given(scope=..., attributes=_ATTRIBUTES)
def test_scope_attributes_replace_those_of_their_keys(scope: ScopeSpans, attributes: dict[str, Value]) -> None:
    scope.ClearField("spans")
    edited = set_scope_attributes(scope.SerializeToString(), attributes)
    _set(scope.scope.attributes, attributes)
    assert edited == scope.SerializeToString()
    assert {key: scope_attributes(edited)[key] for key in attributes} == attributes


@settings(max_examples=large(30, 100))
@given(attributes=_ATTRIBUTES, links=_LINKS)
def test_a_span_of_our_own_reads_as_it_was_given(attributes: dict[str, Value], links: list[Link]) -> None:
    events = [Event(5, "happened", attributes)]
    raw = encode_span(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        parent_span_id=b"p" * 8,
        name="own",
        start=1,
        end=(1 << 64) - 1,
        kind=2,
        flags=257,
        trace_state="a=b",
        status=Status(2, "no node fits"),
        attributes=attributes,
        events=events,
        links=links,
    )
    view = SpanView(raw)
    assert (view.trace_id, view.span_id, view.parent_span_id) == (b"t" * 16, b"s" * 8, b"p" * 8)
    assert (view.name, view.kind, view.flags, view.trace_state) == ("own", 2, 257, "a=b")
    assert (view.start, view.end, view.duration, view.status) == (1, (1 << 64) - 1, (1 << 64) - 2, (2, "no node fits"))
    assert (view.attributes, view.events, view.links) == (attributes, events, links)


@given(attributes=_ATTRIBUTES)
def test_headers_of_our_own_read_as_they_were_given(attributes: dict[str, Value]) -> None:
    assert resource_attributes(resource_header(attributes, "url")) == attributes
    assert scope_name(scope_header("podtrail", "1.0")) == "podtrail"
