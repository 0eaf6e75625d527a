"""`ottl_condition` among the other policies."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from podtrail.otlp import Status
from tests.sizes import large

Make = Callable[..., Any]
MS = 1_000_000
START = 1_760_000_000_000 * MS
FAILING = 'Int(attributes["n"]) == 1'
"""Fails for a text that is no number."""


def sub(policy: Make, type: str, **settings: object) -> dict[str, object]:
    """Return a policy that has the failing condition as its part."""
    part = policy("ottl_condition", "part", error_mode="propagate", span=[FAILING])
    parts = {"and": "and_sub_policy", "drop": "drop_sub_policy", "composite": "composite_sub_policy"}
    inner = {"not_sub_policy": part} if type == "not" else {parts[type]: [part]}
    made: dict[str, object] = policy(type, "outer", **inner, **settings)
    return made


def test_conditions_on_different_spans_do_not_add_up(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("ottl_condition", span=['name == "a" and attributes["k"] == "v"']))
    made.send(0, span(1, 1, name="a"), span(1, 2, name="b", attributes={"k": "v"}))
    made.send(0, span(2, 1, name="a", attributes={"k": "v"}))
    made.stop(10)
    assert made.decisions == {1: "not_sampled", 2: "sampled"}


def test_a_span_is_seen_under_its_own_resource(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("ottl_condition", span=['resource.attributes["r"] == "x" and name == "b"']))
    made.send(0, span(1, 1, name="a", resource={"r": "x"}), span(1, 2, name="b", resource={"r": "y"}))
    made.send(0, span(2, 1, name="a", resource={"r": "y"}), span(2, 2, name="b", resource={"r": "x"}))
    made.send(0, span(2, 3, name="a", resource={"r": "y"}))
    made.stop(10)
    assert made.decisions == {1: "not_sampled", 2: "sampled"}


_CONDITIONS = st.sampled_from(
    [
        'attributes["k"] == "v"',
        'attributes["k"] != "v" and name == "a"',
        'not (attributes["k"] > 1)',
        'resource.attributes["r"] == "x" and attributes["k"] == 2.0',
        'resource.attributes["r"] == nil or name == "b"',
        'IsMatch(attributes["k"], "^[v2]$") and status.code == STATUS_CODE_ERROR',
        "status.code == STATUS_CODE_UNSET and IsRootSpan()",
        'end_time - start_time > Duration("5ms") and name != "a"',
        "end_time_unix_nano - start_time_unix_nano >= 7000000",
        'Len(attributes["k"]) > 0 or kind == SPAN_KIND_SERVER',
    ]
)
_SPANS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b"]),
        "parent": st.sampled_from([0, 9]),
        "status": st.sampled_from([None, Status(2, "")]),
        "end": st.sampled_from([START + 4 * MS, START + 7 * MS]),
        "attributes": st.sampled_from([{}, {"k": "v"}, {"k": 2}, {"other": "v"}]),
        "resource": st.sampled_from([{}, {"r": "x"}, {"r": "y"}]),
    }
)


@given(st.lists(_CONDITIONS, min_size=1, max_size=3), st.lists(_SPANS, min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=large(50, 100))
def test_a_trace_is_kept_when_one_of_its_spans_alone_would_be(
    sampler: Make, span: Make, policy: Make, conditions: list[str], spans: list[dict[str, Any]]
) -> None:
    made = sampler(policy("ottl_condition", span=conditions))
    for number, about in enumerate(spans, 1):
        made.send(0, span(99, number, start=START, **about), span(number, start=START, **about))
    made.stop(10)
    alone = [decision for trace, decision in made.decisions.items() if trace != 99]
    assert made.decisions[99] == ("sampled" if "sampled" in alone else "not_sampled")


def test_the_verdict_tells_which_condition_holds(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("ottl_condition", "slow", span=['name == "x"', 'end_time - start_time > Duration("5ms")']))
    made.send(0, span(1))
    made.stop(10)
    (verdict,) = made.verdicts
    assert verdict.reason == 'a span or event meets end_time - start_time > Duration("5ms")'


@pytest.mark.parametrize("mode", [{}, {"error_mode": "ignore"}, {"error_mode": "SILENT"}])
def test_a_condition_that_fails_is_passed_over(sampler: Make, span: Make, policy: Make, mode: dict[str, str]) -> None:
    made = sampler(policy("ottl_condition", span=[FAILING, 'name == "x"'], **mode))
    made.send(0, span(1, name="x", attributes={"n": "text"}), span(2, attributes={"n": "text"}))
    made.stop(10)
    assert made.decisions == {1: "sampled", 2: "not_sampled"}
    assert not made.counted("sampling_policy_evaluation_error")


def test_ignore_logs_a_failure_once_a_minute(
    sampler: Make, span: Make, policy: Make, caplog: pytest.LogCaptureFixture
) -> None:
    failing = {"attributes": {"n": "text"}}
    made = sampler(policy("ottl_condition", "o", error_mode="ignore", span=[FAILING, 'name == "x"']))
    for at in (0, 20, 40):
        made.send(at, span(at + 1, **failing), span(at + 2, name="x", **failing))
    assert [record.getMessage() for record in caplog.records] == [
        f"o: no answer of the condition {FAILING}: 'text' is no integer"
    ]
    made.send(70, span(9, **failing))
    made.stop(80)
    assert len(caplog.records) == 2


def test_silence_is_kept_about_failures(
    sampler: Make, span: Make, policy: Make, caplog: pytest.LogCaptureFixture
) -> None:
    made = sampler(policy("ottl_condition", error_mode="silent", span=[FAILING]))
    made.send(0, span(1, attributes={"n": "text"}))
    made.stop(10)
    assert not caplog.records


def test_a_failure_that_propagates_leaves_the_policy_without_a_vote(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(
        policy("ottl_condition", "o", error_mode="propagate", span=[FAILING]),
        policy("string_attribute", "s", key="k", values=["v"]),
    )
    made.send(0, span(1, attributes={"n": "text"}), span(2, attributes={"n": "text", "k": "v"}), span(3))
    made.stop(10)
    assert made.decisions == {1: "not_sampled", 2: "sampled", 3: "not_sampled"}
    assert made.counted("sampling_policy_evaluation_error") == {"": 2}
    assert made.counted("sampling_policy_execution_count") == {"policy=o": 3, "policy=s": 3}
    assert made.verdicts[0].votes == {"s": "not_sampled"}
    assert "failed: o" in made.verdicts[0].reason


def test_a_span_that_matches_before_one_that_fails_decides(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("ottl_condition", error_mode="propagate", span=[FAILING]))
    one, text = {"attributes": {"n": 1}}, {"attributes": {"n": "text"}}
    made.send(0, span(1, 1, **one), span(1, 2, **text), span(2, 1, **text), span(2, 2, **one))
    made.stop(10)
    assert made.decisions == {1: "sampled", 2: "not_sampled"}


@pytest.mark.parametrize("type", ["and", "not", "drop", "composite"])
def test_what_holds_a_policy_that_fails_has_no_vote_either(sampler: Make, span: Make, policy: Make, type: str) -> None:
    made = sampler(sub(policy, type), policy("always_sample"))
    made.send(0, span(1, attributes={"n": "text"}))
    made.stop(10)
    assert made.decisions == {1: "sampled"}
    assert made.counted("sampling_policy_evaluation_error") == {"": 1}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, ["at least one condition"]),
        ({"span": [], "spanevent": []}, ["at least one condition"]),
        ({"error_mode": "", "span": ["true"]}, ["error_mode"]),
        ({"spans": ["true"]}, ["spans"]),
        ({"span": 'IsMatch(name, "n")'}, ["line 1, column 13 of"]),
        (
            {"span": ["true", "nope == 1"], "spanevent": ["name =="]},
            ["line 1, column 1 of 'nope == 1'", "line 1, column 8 of 'name =='"],
        ),
        ({"span": ["Frobnicate(name)"]}, ["unknown function 'Frobnicate'; there are Base64Decode"]),
    ],
)
def test_refuses_what_it_cannot_ask(sampler: Make, policy: Make, settings: object, says: Sequence[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        sampler({"name": "o", "type": "ottl_condition", "ottl_condition": settings})
    assert all(text in str(caught.value) for text in says)


def test_settings_of_a_policy_that_is_not_used_are_not_compiled(sampler: Make, policy: Make) -> None:
    sampler({"name": "a", "type": "always_sample", "ottl_condition": {"span": ["nope"]}})
