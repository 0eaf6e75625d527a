"""Policies with a budget: how much of it there is, when it comes back, and what it is charged for."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData
from podtrail_processors.evidence.sizes import Meter, Size
from podtrail_processors.tail_sampling.voting.limiter import Limiter

from podtrail.otlp import read_request, scope_attributes

SECOND = 1_000_000_000

Make = Callable[..., Any]


@pytest.fixture(name="kept")
def _kept(sampler: Make, span: Make) -> Callable[..., list[int]]:
    """Return what sends traces of so many spans, at these seconds, and tells which were kept: 1 is the first."""

    def kept(about: object, *traces: tuple[float, int], **settings: object) -> list[int]:
        made = sampler(about, decision_wait="1s", **settings)
        for number, (at, spans) in enumerate(traces, 1):
            made.send(at, *(span(number, id=one + 1) for one in range(spans)))
        made.stop(traces[-1][0] + 10)
        return [trace for trace, decision in made.decisions.items() if decision == "sampled"]

    return kept


def test_rate_limiting_lets_a_burst_pass_and_then_its_rate(kept: Make, policy: Make) -> None:
    about = policy("rate_limiting", spans_per_second=1, burst_capacity=3)
    assert kept(about, (0, 2), (0.1, 1), (0.2, 1), (1.1, 1), (1.2, 1)) == [1, 2, 4]


def test_a_burst_is_twice_the_rate_unless_given(kept: Make, policy: Make) -> None:
    assert kept(policy("rate_limiting", spans_per_second=2), *[(0, 1)] * 5) == [1, 2, 3, 4]
    assert kept(policy("rate_limiting", spans_per_second=2, burst_capacity=-1), *[(0, 1)] * 5) == [1, 2, 3, 4]


def test_a_trace_above_the_burst_never_passes_and_takes_nothing(kept: Make, policy: Make) -> None:
    about = policy("rate_limiting", spans_per_second=100, burst_capacity=2)
    assert kept(about, (0, 3), (0, 2), (60, 3)) == [2]


def test_a_rate_of_nothing_spends_its_burst_once(kept: Make, policy: Make) -> None:
    assert kept(policy("rate_limiting", spans_per_second=0, burst_capacity=1), (0, 1), (3600, 1)) == [1]
    assert kept(policy("rate_limiting", spans_per_second=-1), (0, 1), (3600, 1)) == []
    assert kept(policy("rate_limiting"), (0, 1), (3600, 1)) == []


def test_a_budget_is_charged_for_what_another_policy_keeps_as_well(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), policy("rate_limiting", spans_per_second=1, burst_capacity=1))
    for number in range(3):
        made.send(0, span(number + 1))
    made.stop(10)
    assert made.counted("count_traces_sampled")["decision=sampled,policy=rate_limiting,sampled=true"] == 1


@given(
    st.integers(0, 50),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 20)), min_size=1, max_size=30),
)
def test_no_span_of_time_sees_more_tokens_than_burst_and_rate_give(
    per_second: int, burst: int, asked: list[tuple[int, int]]
) -> None:
    limiter, now, began, taken = Limiter(per_second, burst), 0, None, 0
    for pause, tokens in asked:
        now += pause
        began = now if began is None else began
        if limiter.take(tokens, now):
            taken += tokens
        assert taken * SECOND <= burst * SECOND + (now - began) * per_second


def test_bytes_limiting_counts_the_bytes_of_the_whole_trace(sampler: Make, span: Make, policy: Make) -> None:
    # Two requests make two ResourceSpans messages.
    size = 2 * sum(Meter().grown(Size(), 1, span(1).group()))
    for burst, decision in ((size, "sampled"), (size - 1, "not_sampled")):
        made = sampler(policy("bytes_limiting", bytes_per_second=1, burst_capacity=burst))
        made.send(0, span(1))
        made.send(0, span(1, id=2))
        made.stop(10)
        assert made.decisions[1] == decision


@given(st.lists(st.lists(st.text(max_size=200), min_size=1, max_size=4), max_size=4))
def test_a_trace_is_measured_as_the_message_it_would_be_by_itself(scopes: list[list[str]]) -> None:
    spans = [
        [
            Span(
                trace_id=b"t" * 16,
                span_id=b"s" * 8,
                parent_span_id=b"p" * 8,
                name=name,
                status=Status(),
            )
            for name in scope
        ]
        for scope in scopes
    ]
    scope_spans = [ScopeSpans(scope=InstrumentationScope(name=f"s{at}"), spans=of) for at, of in enumerate(spans)]
    whole = TracesData(resource_spans=[ResourceSpans(resource=Resource(), scope_spans=scope_spans)])
    others = ScopeSpans(spans=[Span(trace_id=b"o" * 16, span_id=b"s" * 8)])
    whole.resource_spans[0].scope_spans.append(others)
    meter, size = Meter(), Size()
    for group in read_request(whole.SerializeToString()).groups:
        if group.trace_id == b"t" * 16:
            size = meter.grown(size, 1, group)
    del whole.resource_spans[0].scope_spans[-1]
    assert sum(size) == (whole.ByteSize() if scopes else 0)


def composite(total: int, *parts: dict[str, object], **shares: int) -> dict[str, object]:
    """Return a composite of parts with shares in percent."""
    allocation = [{"policy": name, "percent": percent} for name, percent in shares.items()]
    block = {"max_total_spans_per_second": total, "composite_sub_policy": parts, "rate_allocation": allocation}
    return {"name": "c", "type": "composite", "composite": block}


def test_a_composite_spends_each_part_s_share_of_a_second_and_begins_anew_in_the_next(kept: Make, policy: Make) -> None:
    about = composite(4, policy("always_sample", "all"))
    assert kept(about, (0.1, 3), (0.2, 2), (0.3, 1), (0.4, 1), (1.1, 3)) == [1, 3, 5]


def test_over_its_share_nothing_falls_through_to_the_next_part(kept: Make, policy: Make) -> None:
    parts = policy("span_count", "large", min_spans=2), policy("always_sample", "rest")
    assert kept(composite(4, *parts, large=50, rest=50), (0.1, 2), (0.2, 2), (0.3, 1)) == [1, 3]


def test_shares_are_cut_to_whole_spans_and_equal_where_none_is_given(kept: Make, policy: Make) -> None:
    parts = policy("span_count", "large", min_spans=2), policy("always_sample", "rest")
    assert kept(composite(10, *parts, large=19), *[(0.1, 2)], *[(0.2, 1)] * 6) == [2, 3, 4, 5, 6]


def test_the_total_of_a_composite_holds_for_each_part_by_itself(kept: Make, policy: Make) -> None:
    parts = policy("span_count", "large", min_spans=2), policy("always_sample", "rest")
    assert kept(composite(2, *parts, large=100, rest=100), (0.1, 2), (0.2, 1), (0.3, 1), (0.4, 1)) == [1, 2, 3]


def test_a_composite_tells_which_part_said_yes_and_why(sampler: Make, span: Make, policy: Make) -> None:
    parts = policy("span_count", "large", min_spans=2), policy("always_sample", "rest")
    made = sampler(composite(100, *parts), gates=["processor.tailsamplingprocessor.recordpolicy"])
    made.send(0, span(1), span(1, id=2))
    made.stop(10)
    (verdict,) = made.verdicts
    assert verdict.reason == "large: it has 2 spans, at least 2"
    (groups,) = (batch.groups for batch in made.out if batch.groups)
    recorded = {"tailsampling.policy": "c", "tailsampling.composite_policy": "large"}
    assert [scope_attributes(group.scope) for group in groups] == [recorded] * len(groups)


def test_a_composite_may_hold_and_but_no_other_compound(sampler: Make, policy: Make) -> None:
    both: dict[str, object] = {"name": "both", "type": "and", "and": {"and_sub_policy": [policy("always_sample")]}}
    sampler(composite(1, both))
    for type in ("not", "drop", "composite"):
        other: dict[str, object] = {"name": "other", "type": type, type: {}}
        with pytest.raises(ValueError, match=f"unknown sampling policy type '{type}'"):
            sampler(composite(1, other))
