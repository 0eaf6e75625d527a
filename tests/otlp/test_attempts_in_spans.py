"""Attempts and refusals as they are found in the bytes of a trace, wherever they stand."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import (
    ROOT_NAME,
    Event,
    SpanView,
    Value,
    attempts_in,
    encode_span,
    frame,
    read_attempt,
    read_rejections,
    split,
)
from podtrail.testing.attempts import no_room

TRACE = b"t" * 16
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8)
values = scalars | st.lists(scalars, max_size=3)


def span(name: str, id: int = 1, **attributes: Value) -> bytes:
    dotted = {key.replace("_", "."): value for key, value in attributes.items()}
    return encode_span(
        trace_id=TRACE, span_id=id.to_bytes(8, "big"), name=name, start=1, end=2, attributes=dotted, events=()
    )


@given(st.permutations(split(no_room().groups()[0].spans)))
def test_an_attempt_is_found_in_any_order_of_its_spans(spans: Sequence[bytes]) -> None:
    (attempt,) = attempts_in(frame(spans))
    assert (attempt.name, attempt.result, attempt.queue_wait) == ("web-0", "Unschedulable", 2_000_000)
    assert attempt.failed


def test_spans_that_only_name_the_root_are_no_attempts() -> None:
    others = [span("GET", 1, caller=ROOT_NAME), span("SchedulePodGroup", 2), span(ROOT_NAME, 3), span("x" + ROOT_NAME)]
    assert [attempt.span_id[-1] for attempt in attempts_in(frame(others))] == [3]
    assert list(attempts_in(frame(others[:2]))) == []
    assert list(attempts_in(b"")) == []


def test_several_attempts_of_one_trace_come_in_their_order() -> None:
    spans = [span(ROOT_NAME, 3), span("filter", 9), span(ROOT_NAME, 1), span(ROOT_NAME, 2), span("bind", 8)]
    assert [attempt.span_id[-1] for attempt in attempts_in(frame(spans))] == [3, 1, 2]


@pytest.mark.parametrize(
    ("said", "wait", "declared"),
    [
        ({"scheduler.queue_wait_ms": 7, "scheduler.attempts": 3}, 7_000_000, 3),
        ({"scheduler.queue_wait_ms": 0.5, "scheduler.attempts": 0.5}, 500_000, 0),
        ({"scheduler.queue_wait_ms": True, "scheduler.attempts": True}, None, 0),
        ({"scheduler.queue_wait_ms": -1, "scheduler.attempts": -1}, None, 0),
        ({"scheduler.queue_wait_ms": float("nan"), "scheduler.attempts": 1 << 40}, None, 0),
        ({"scheduler.queue_wait_ms": float("inf"), "scheduler.attempts": "3"}, None, 0),
        ({}, None, 0),
    ],
)
def test_numbers_are_taken_only_if_they_make_sense(said: dict[str, Value], wait: int | None, declared: int) -> None:
    raw = encode_span(trace_id=TRACE, span_id=b"s" * 8, name=ROOT_NAME, start=1, end=2, attributes=said)
    attempt = read_attempt(SpanView(raw))
    assert attempt is not None
    assert (attempt.queue_wait, attempt.declared) == (wait, declared)


@given(st.dictionaries(st.sampled_from(["k8s.pod.uid", "scheduler.result", "scheduler.profile", "x"]), values))
def test_whatever_a_root_says_of_itself_is_read_as_text_or_not_at_all(said: dict[str, Value]) -> None:
    raw = encode_span(trace_id=TRACE, span_id=b"s" * 8, name=ROOT_NAME, start=1, end=2, attributes=said)
    attempt = read_attempt(SpanView(raw))
    assert attempt is not None
    seen = SpanView(raw).attributes
    for key, value in (("k8s.pod.uid", attempt.pod_uid), ("scheduler.result", attempt.result)):
        told = seen.get(key)
        assert value == (told if isinstance(told, str) else "")


@given(st.dictionaries(st.sampled_from(["scheduler.nodes.count", "scheduler.nodes.names", "scheduler.reason"]), values))
def test_whatever_a_plugin_says_is_a_refusal_with_sane_fields(said: dict[str, Value]) -> None:
    events = [Event(1, "plugin rejected", said), Event(1, "preemption", said)]
    raw = encode_span(trace_id=TRACE, span_id=b"s" * 8, name="plugin: Mine", start=1, end=2, events=events)
    (refusal,) = read_rejections(raw)
    assert refusal.plugin == "Mine"
    assert isinstance(refusal.reason, str)
    assert refusal.nodes is None or type(refusal.nodes) is int
    assert all(isinstance(name, str) for name in refusal.names)


def test_what_post_filter_could_not_do_kept_nobody_from_being_scheduled() -> None:
    def span(point: str) -> bytes:
        said: dict[str, Value] = {"scheduler.plugin.extension_point": point}
        events = [Event(1, "plugin rejected", {"scheduler.reason": "no"})]
        return encode_span(
            trace_id=TRACE, span_id=b"s" * 8, name="plugin: Mine", start=1, end=2, attributes=said, events=events
        )

    assert [no.point for point in ("filter", "postFilter", "permit") for no in read_rejections(span(point))] == [
        "filter",
        "permit",
    ]
