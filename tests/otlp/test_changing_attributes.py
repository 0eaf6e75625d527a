"""Attributes set and removed, and events left out, in the bytes of a span."""

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp import Event, SpanView, Status, Value, change_attributes, encode_span, keep_events
from tests.sizes import large

UNKNOWN = b"\xfa\x3e\x03new"  # field 1007, which nobody knows
KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=5,
)
ATTRIBUTES = st.dictionaries(KEYS, VALUES)


def span(attributes: dict[str, Value], events: int = 0) -> bytes:
    """Return a span with a field that nobody knows."""
    made = encode_span(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        name="work",
        start=1,
        end=2,
        status=Status(2, "no"),
        attributes=attributes,
        events=[Event(at, f"event {at}", {"at": at}) for at in range(events)],
    )
    return made + UNKNOWN


@settings(max_examples=large(40, 100))
@given(ATTRIBUTES, ATTRIBUTES, st.sets(KEYS))
def test_sets_and_removes_what_is_named_and_keeps_the_order(
    before: dict[str, Value], changed: dict[str, Value], removed: set[str]
) -> None:
    raw = change_attributes(span(before), changed, removed - changed.keys())
    expected = {key: value for key, value in (before | changed).items() if key in changed or key not in removed}
    after = SpanView(raw).attributes
    assert after == expected
    assert list(after) == list(expected)
    assert list(map(type, after.values())) == list(map(type, expected.values()))


@settings(max_examples=large(40, 100))
@given(ATTRIBUTES, ATTRIBUTES)
def test_all_else_stays_as_it_is(before: dict[str, Value], changed: dict[str, Value]) -> None:
    raw = change_attributes(span(before, events=1), changed, ())
    view, old = SpanView(raw), SpanView(span(before, events=1))
    assert (view.name, view.status, view.events, view.end) == (old.name, old.status, old.events, old.end)
    assert raw[:28] == old.raw[:28]
    assert UNKNOWN in raw


def test_signs_of_zero_and_types_are_not_mixed_up() -> None:
    for value in (0.0, -0.0, 0, False, 1, True, 1.0):
        after = SpanView(change_attributes(span({}), {"a": value}, ())).attributes["a"]
        assert repr(after) == repr(value)


def test_of_several_attributes_of_one_key_one_is_left_when_it_is_set() -> None:
    twice = span({"a": 1, "b": 2}) + span({"a": 3})[28:]
    assert SpanView(change_attributes(twice, {"a": 5}, ())).attributes == {"a": 5, "b": 2}
    message = trace_pb2.Span.FromString(change_attributes(twice, {"a": 5}, ()))
    assert [pair.key for pair in message.attributes] == ["a", "b"]
    assert SpanView(change_attributes(twice, {}, {"a"})).attributes == {"b": 2}


@given(st.integers(0, 5), st.sets(st.integers(0, 4)))
def test_keeps_events_by_their_position(events: int, positions: set[int]) -> None:
    raw = keep_events(span({"a": 1}, events), positions)
    assert [event.time for event in SpanView(raw).events] == [at for at in range(events) if at in positions]
    assert SpanView(raw).attributes == {"a": 1}
    assert UNKNOWN in raw
