"""With the gate `usetracestate`, randomness in trace states decides, and kept spans tell their threshold."""

from collections.abc import Callable
from typing import Any

import pytest

from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.otlp import SpanView, Status, split

ERROR = Status(2, "")

Make = Callable[..., Any]


@pytest.fixture(name="left")
def _left(sampler: Make, span: Make) -> Callable[..., list[str]]:
    """Return what sends one trace and tells with what trace states its spans leave."""

    def left(about: list[object], *spans: dict[str, Any], gate: bool = True, **settings: object) -> list[str]:
        made = sampler(*about, gates=[USE_TRACE_STATE] if gate else [], **settings)
        for number, one in enumerate(spans, 1):
            made.send(0, span(1, number, **one))
        made.stop(10)
        groups = [group for batch in made.out for group in batch.groups]
        return [SpanView(raw).trace_state for group in groups for raw in split(group.spans)]

    return left


def half(policy: Make) -> Any:
    """Return a policy that keeps half of the traces."""
    return policy("probabilistic", sampling_percentage=50)


@pytest.mark.parametrize(
    ("state", "left_as"),
    [
        ("ot=rv:80000000000000", ["ot=rv:80000000000000;th:8"]),
        ("ot=rv:7fffffffffffff", []),
        ("ot=th:c;rv:d0000000000000,x=y", ["ot=th:c;rv:d0000000000000,x=y"]),
        ("ot=th:0", []),
    ],
)
def test_the_randomness_that_a_span_tells_of_decides(left: Make, policy: Make, state: str, left_as: list[str]) -> None:
    # The id of the trace is 1, which is hardly random at all.
    assert left([half(policy)], {"trace_state": state}) == left_as


def test_without_the_gate_nothing_is_read_or_written(left: Make, policy: Make) -> None:
    assert left([policy("always_sample")], {"trace_state": "ot=th:0"}, gate=False) == ["ot=th:0"]


def test_the_lowest_threshold_of_all_that_said_yes_is_written(left: Make, policy: Make) -> None:
    spans: list[dict[str, Any]] = [{"trace_state": "ot=rv:ffffffffffffff", "status": ERROR}, {}]
    errors = policy("status_code", status_codes=["ERROR"])
    assert left([half(policy)], *spans) == ["ot=rv:ffffffffffffff;th:8", "ot=th:8"]
    assert left([half(policy), errors], *spans) == ["ot=rv:ffffffffffffff;th:0", "ot=th:0"]


def test_the_threshold_of_and_is_its_highest_and_that_of_not_is_none(left: Make, policy: Make) -> None:
    state = {"trace_state": "ot=rv:ffffffffffffff"}
    quarter = policy("probabilistic", "quarter", sampling_percentage=25)
    both = policy("and", and_sub_policy=[half(policy), quarter, policy("always_sample")])
    assert left([both], state) == ["ot=rv:ffffffffffffff;th:c"]
    neither = policy("not", not_sub_policy=policy("probabilistic", sampling_percentage=0))
    assert left([neither], state) == ["ot=rv:ffffffffffffff;th:0"]


def test_a_part_that_matches_is_told_alone(left: Make, policy: Make) -> None:
    about = [policy("status_code", status_codes=["ERROR"])]
    assert left(about, {}, {"status": ERROR}, sampling_strategy="span-ingest") == ["", "ot=th:0"]


def test_a_trace_state_that_breaks_the_rules_is_counted_and_left(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), gates=[USE_TRACE_STATE])
    made.send(0, span(1, trace_state="No=such"))
    made.stop(10)
    assert made.counted("count_spans_with_unparseable_tracestate") == {"": 1}
    assert made.kept == [(1, 1)]
