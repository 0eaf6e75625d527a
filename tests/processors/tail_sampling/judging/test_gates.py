"""Policies that need not be asked change nothing: each votes among others as it does alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podtrail.otlp import Status, Value
from tests.sizes import large

Make = Callable[..., Any]


def of(type: str, **block: object) -> dict[str, object]:
    return {"name": "", "type": type, type: block}


TEXT = of("string_attribute", key="a", values=["x"])
OTTL = of("ottl_condition", span=['attributes["n"] > 3 and name == "bind"', 'resource.attributes["a"] == "x"'])
FAILING = of("ottl_condition", span=['Int(attributes["a"]) == 4'], error_mode="propagate")
FAILED = of("status_code", status_codes=["ERROR"])
POLICIES: Sequence[Mapping[str, object]] = [
    TEXT,
    OTTL,
    FAILING,
    FAILED,
    of("string_attribute", key="a", values=["x"], invert_match=True),
    of("numeric_attribute", key="n", min_value=4),
    of("latency", threshold_ms=5),
    of("ottl_condition", span=["kind == SPAN_KIND_SERVER"], spanevent=['name == "e"']),
    of("and", and_sub_policy=[FAILED, TEXT]),
    of("and", and_sub_policy=[FAILING, TEXT]),
    of("not", not_sub_policy=OTTL),
    of("drop", drop_sub_policy=[OTTL]),
]
ATTRIBUTES: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries(
    {}, optional={"a": st.sampled_from(["x", "4", 4]), "n": st.sampled_from([3, 4, "4"])}
)
SPANS = st.fixed_dictionaries(
    {
        "attributes": ATTRIBUTES,
        "resource": st.sampled_from([{}, {"a": "x"}]),
        "name": st.sampled_from(["bind", "score"]),
        "status": st.sampled_from([None, Status(2, "")]),
    }
)
TRACES = st.lists(st.lists(SPANS, min_size=1, max_size=3), min_size=1, max_size=5)


def votes_of(
    sampler: Make, span: Make, policies: Sequence[Mapping[str, object]], traces: Any, *, first_match: bool = False
) -> Sequence[Mapping[str, str]]:
    made = sampler(*policies, sample_on_first_match=first_match)
    for number, trace in enumerate(traces, 1):
        made.send(0, *(span(number, at, **fields) for at, fields in enumerate(trace, 1)))
    made.stop(10)
    return [dict(verdict.votes) for verdict in made.verdicts]


@pytest.mark.parametrize("first_match", [False, True])
@given(chosen=st.lists(st.sampled_from(POLICIES), min_size=1, max_size=6), traces=TRACES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=large(25, 100))
def test_each_policy_votes_as_it_does_alone(
    sampler: Make, span: Make, first_match: bool, chosen: Sequence[Mapping[str, object]], traces: Any
) -> None:
    named = [{**policy, "name": f"p{at}"} for at, policy in enumerate(chosen)]
    alone = [votes_of(sampler, span, [policy], traces) for policy in named]
    drops_first = sorted(range(len(named)), key=lambda at: named[at]["type"] != "drop")
    last_words = ("dropped", "sampled") if first_match else ("dropped",)
    together = votes_of(sampler, span, named, traces, first_match=first_match)
    for number, votes in enumerate(together):
        expected: dict[str, str] = {}
        for at in drops_first:
            expected |= alone[at][number]
            if set(alone[at][number].values()) & set(last_words):
                break
        assert votes == expected


def test_votes_in_however_many_combinations_are_all_counted(sampler: Make, span: Make) -> None:
    about = [{**of("boolean_attribute", key=f"b{bit}", value=True), "name": f"b{bit}"} for bit in range(13)]
    made = sampler(*about)
    traces = range(1, 5001)
    for number in traces:
        made.send(0, span(number, attributes={f"b{bit}": True for bit in range(13) if number >> bit & 1}))
    made.stop(10)
    assert made.counted("global_count_traces_sampled") == {"decision=sampled,sampled=true": 5000}
    assert made.counted("sampling_policy_execution_count") == {f"policy=b{bit}": 5000 for bit in range(13)}
    told = made.counted("count_traces_sampled")
    assert [told[f"decision=sampled,policy=b{bit},sampled=true"] for bit in range(13)] == [
        sum(number >> bit & 1 for number in traces) for bit in range(13)
    ]
