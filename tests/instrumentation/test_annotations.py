import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.baggage import get_all, set_baggage
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from podtrail_instrumentation import PropagationCounters, extract_context, inject_context

KEY = "tracing.k8s.io/traceparent"
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


def context(state: str = "", flags: int = 1) -> Context:
    span = SpanContext(
        int(TRACE, 16),
        int(SPAN, 16),
        is_remote=False,
        trace_flags=TraceFlags(flags),
        trace_state=TraceState.from_header([state]) if state else None,
    )
    return set_span_in_context(NonRecordingSpan(span), Context())


def counters() -> PropagationCounters:
    return PropagationCounters("kube-scheduler", "default-scheduler", "Pod")


def extracted(annotations: dict[str, str]) -> SpanContext:
    return get_current_span(extract_context(annotations)).get_span_context()


def test_injects_the_traceparent_alone_when_there_is_no_state() -> None:
    assert inject_context({}, context()) == {KEY: TRACEPARENT}


def test_injects_a_tracestate_that_is_not_empty() -> None:
    assert inject_context({}, context("a=1"))["tracing.k8s.io/tracestate"] == "a=1"


def test_injects_own_baggage() -> None:
    changes = inject_context({}, set_baggage("tenant", "blue", context()))
    assert changes["tracing.k8s.io/baggage"] == "tenant=blue"


def test_never_writes_again_what_is_there_already() -> None:
    assert inject_context({KEY: TRACEPARENT, "other": "x"}, context()) == {}


def test_replaces_the_context_of_somebody_else_and_empties_its_tracestate() -> None:
    theirs = {KEY: f"00-{'1' * 32}-{'2' * 16}-01", "tracing.k8s.io/tracestate": "b=2"}
    assert inject_context(theirs, context()) == {KEY: TRACEPARENT, "tracing.k8s.io/tracestate": ""}


def test_writes_nothing_without_a_span() -> None:
    assert inject_context({}, Context()) == {}
    assert inject_context({}, None) == {}


def test_the_prefix_is_configurable() -> None:
    changes = inject_context({}, context(), prefix="trace.example.com/")
    assert changes == {"trace.example.com/traceparent": TRACEPARENT}
    remote = get_current_span(extract_context(changes, prefix="trace.example.com/")).get_span_context()
    assert remote.span_id == int(SPAN, 16)


def test_what_was_injected_is_extracted_as_remote() -> None:
    span = extracted(inject_context({}, context("a=1,b=2", flags=3)))
    assert (f"{span.trace_id:032x}", f"{span.span_id:016x}", span.trace_flags) == (TRACE, SPAN, 3)
    assert span.is_remote
    assert span.trace_state.to_header() == "a=1,b=2"


def test_baggage_in_annotations_is_ignored() -> None:
    assert not get_all(extract_context({KEY: TRACEPARENT, "tracing.k8s.io/baggage": "admin=true"}))


@pytest.mark.parametrize(
    "value",
    [
        "",
        TRACEPARENT.upper(),
        " " + TRACEPARENT,
        TRACEPARENT + "\n",
        TRACEPARENT + "-more",
        TRACEPARENT[:-1],
        "01" + TRACEPARENT[2:],
        "ff" + TRACEPARENT[2:],
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0g",
        TRACEPARENT.replace("-", "_"),
    ],
)
def test_anything_but_a_strict_traceparent_is_ignored(value: str) -> None:
    count = counters()
    assert extract_context({KEY: value}, counters=count) == {}
    assert count.extracted == {"invalid": 1}


@pytest.mark.parametrize("state", ["", "no equals sign", "a=" + "x" * 600])
def test_a_bad_tracestate_is_left_out(state: str) -> None:
    span = extracted({KEY: TRACEPARENT, "tracing.k8s.io/tracestate": state})
    assert span.is_valid
    assert len(span.trace_state) == 0


@given(
    st.text(alphabet="0123456789abcdefABCDEFg-\n ", max_size=60) | st.from_regex(re.compile(r"\A00-[0-9a-f-]{52}\Z"))
)
def test_takes_no_more_than_the_w3c_propagator_does(value: str) -> None:
    theirs = get_current_span(TraceContextTextMapPropagator().extract({"traceparent": value})).get_span_context()
    ours = extracted({KEY: value})
    assert not ours.is_valid or (ours.trace_id, ours.span_id) == (theirs.trace_id, theirs.span_id)


def test_counts_what_it_did() -> None:
    count = counters()
    inject_context({}, context(), counters=count)
    inject_context({KEY: TRACEPARENT}, context(), counters=count)
    inject_context({}, None, counters=count)
    extract_context({KEY: TRACEPARENT}, counters=count)
    extract_context({}, counters=count)
    labels = {"component": "kube-scheduler", "controller": "default-scheduler", "resource_kind": "Pod"}
    assert list(count.samples()) == [
        ("trace_context_annotations_injected_total", {**labels, "result": "no_context"}, 1),
        ("trace_context_annotations_injected_total", {**labels, "result": "success"}, 1),
        ("trace_context_annotations_injected_total", {**labels, "result": "unchanged"}, 1),
        ("trace_context_annotations_extracted_total", {**labels, "result": "absent"}, 1),
        ("trace_context_annotations_extracted_total", {**labels, "result": "success"}, 1),
    ]
