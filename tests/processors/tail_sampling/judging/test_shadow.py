"""Policies that are only tried: counted, shown, and without any effect."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY
from pydantic import ValidationError

from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.otlp import PolicyVote, Status
from podtrail.otlp.decisions import decision_line
from tests.sizes import large

MS = 1_000_000
START = 1_790_000_000_000_000_000
ERROR = Status(2, "")

Make = Callable[..., Any]


def shadow(policy: Mapping[str, object]) -> dict[str, object]:
    """Return a policy that is only tried."""
    return {**policy, "shadow": True}


def named(type: str, name: str = "", **about: object) -> dict[str, object]:
    """Return a policy."""
    return {"name": name or type, "type": type, type: about}


def composite(name: str, total: int, *parts: dict[str, object]) -> dict[str, object]:
    """Return a composite."""
    return named("composite", name, max_total_spans_per_second=total, composite_sub_policy=list(parts))


POLICIES: Sequence[dict[str, object]] = [
    named("always_sample"),
    named("status_code", status_codes=["ERROR"]),
    named("latency", threshold_ms=5),
    named("latency", "between", threshold_ms=2, upper_threshold_ms=8),
    named("span_count", min_spans=2),
    named("probabilistic", sampling_percentage=40),
    named("rate_limiting", spans_per_second=2),
    named("bytes_limiting", bytes_per_second=150),
    named("ottl_condition", span=['attributes["n"] > 2'], error_mode="propagate"),
    named("target_rate", spans_per_second=2, key=["n"]),
    named("latency_quantile"),
    named("drop", drop_sub_policy=[named("latency", threshold_ms=8)]),
    named("and", and_sub_policy=[named("latency", threshold_ms=1), named("rate_limiting", spans_per_second=3)]),
    composite("composite", 4, named("latency", threshold_ms=5), named("always_sample")),
]
TRIED = [{**one, "name": f"tried-{one['name']}"} for one in POLICIES]

lists = st.lists(st.sampled_from(POLICIES), max_size=4, unique_by=lambda one: str(one["name"]))
tried_lists = st.lists(st.sampled_from(TRIED), max_size=4, unique_by=lambda one: str(one["name"]))
spans = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 12), st.booleans(), st.integers(0, 4)), min_size=1, max_size=25
)
gates = st.sampled_from([(), ("processor.tailsamplingprocessor.recordpolicy",)])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=large(40, 100))
@given(active=lists, tried=tried_lists, alternative=lists, sent=spans, first=st.booleans(), gates=gates, at=st.data())
def test_shadows_change_no_decision_and_nothing_that_leaves(
    sampler: Make,
    span: Make,
    active: list[dict[str, object]],
    tried: list[dict[str, object]],
    alternative: list[dict[str, object]],
    sent: list[tuple[int, int, bool, int]],
    first: bool,
    gates: Sequence[str],
    at: Any,
) -> None:
    mixed = at.draw(st.permutations([*active, *map(shadow, tried)]))
    mixed.sort(key=lambda one: active.index(one) if one in active else at.draw(st.integers(0, 4)))
    alone = sampler(*active, sample_on_first_match=first, gates=gates)
    watched = sampler(*mixed, shadow_policies=alternative, sample_on_first_match=first, gates=gates)
    for made in (alone, watched):
        for number, (trace, took, failed, n) in enumerate(sent):
            about = {"end": START + took * MS, "status": ERROR if failed else None, "attributes": {"n": n} if n else {}}
            made.send(number / 4, span(trace, number + 1, **about))
        made.stop(100)
    assert watched.verdicts == alone.verdicts
    assert [batch.groups for batch in watched.out] == [batch.groups for batch in alone.out]
    assert watched.counted("global_count_traces_sampled") == alone.counted("global_count_traces_sampled")


def of_five(sampler: Make, span: Make, *policies: object, **settings: object) -> Any:
    """Return a sampler after five traces of 1 to 5 ms with as many spans."""
    made = sampler(*policies, **settings)
    for took in range(1, 6):
        made.send(0, *(span(took, number, end=START + took * MS) for number in range(1, took + 1)))
    made.stop(10)
    return made


def test_what_a_shadow_would_have_added_is_counted(sampler: Make, span: Make, policy: Make) -> None:
    tried = shadow(policy("latency", "slow", threshold_ms=2))
    made = of_five(sampler, span, policy("latency", "slower", threshold_ms=4), tried)
    assert made.decisions == {1: "not_sampled", 2: "not_sampled", 3: "not_sampled", 4: "not_sampled", 5: "sampled"}
    assert made.counted("shadow_traces") == {"change=added,policy=slow": 2, "change=none,policy=slow": 3}
    assert made.counted("shadow_spans") == {"change=added,policy=slow": 7, "change=none,policy=slow": 8}
    size = len(made.out[-1].groups[0].spans) // 5
    assert made.counted("shadow_bytes") == {"change=added,policy=slow": 7 * size, "change=none,policy=slow": 8 * size}
    assert made.counted("count_traces_sampled")["decision=sampled,policy=slow,sampled=true"] == 3
    assert made.counted("sampling_policy_execution_count") == {"policy=slow": 5, "policy=slower": 5}


def test_what_a_shadow_would_have_dropped_is_counted(sampler: Make, span: Make, policy: Make) -> None:
    tried = shadow(policy("drop", "cheap", drop_sub_policy=[policy("span_count", "small", max_spans=2)]))
    made = of_five(sampler, span, policy("always_sample"), tried)
    assert set(made.decisions.values()) == {"sampled"}
    assert made.counted("shadow_spans") == {"change=dropped,policy=cheap": 3, "change=none,policy=cheap": 12}


def test_a_shadow_is_asked_where_the_others_stopped(sampler: Make, span: Make, policy: Make) -> None:
    made = of_five(sampler, span, policy("always_sample"), shadow(policy("latency")), sample_on_first_match=True)
    assert made.counted("sampling_policy_execution_count") == {"policy=always_sample": 5, "policy=latency": 5}


def test_a_shadow_that_fails_is_counted_and_without_effect(sampler: Make, span: Make, policy: Make) -> None:
    fails = policy("ottl_condition", span=['Substring(name, 1, 99) == "x"'], error_mode="propagate")
    made = of_five(sampler, span, policy("always_sample"), shadow(fails), shadow_policies=[fails])
    assert set(made.decisions.values()) == {"sampled"}
    assert made.counted("sampling_policy_evaluation_error") == {"": 5}
    assert made.counted("shadow_policies_traces") == {"kept_by=current,policy=": 5}
    failed = [vote for vote in made.verdicts[0].explained() if vote.why.startswith("it failed: Substring")]
    assert [(vote.decision, vote.shadow) for vote in failed] == [(None, True)] * 2


def test_an_alternative_list_is_compared_with_the_one_that_decides(sampler: Make, span: Make, policy: Make) -> None:
    drop = policy("drop", drop_sub_policy=[policy("span_count", "large", min_spans=5)])
    alternative = [policy("latency", "slow", threshold_ms=2), drop]
    made = of_five(sampler, span, policy("latency", "slow", threshold_ms=3), shadow_policies=alternative)
    kept = {
        "kept_by=neither,policy=": 2,
        "kept_by=shadow,policy=slow": 1,
        "kept_by=both,policy=slow": 1,
        "kept_by=current,policy=drop": 1,
    }
    assert made.counted("shadow_policies_traces") == kept
    assert made.counted("shadow_policies_spans") == dict(zip(kept, [3, 3, 4, 5], strict=True))
    size = len(made.out[-1].groups[0].spans) // made.out[-1].groups[0].span_count
    assert made.counted("shadow_policies_bytes") == {
        by: spans * size for by, spans in zip(kept, [3, 3, 4, 5], strict=True)
    }
    assert made.counted("count_traces_sampled").keys() == {
        "decision=not_sampled,policy=slow,sampled=false",
        "decision=sampled,policy=slow,sampled=true",
    }


def test_verdicts_show_the_votes_of_shadows_as_such(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(
        policy("latency", threshold_ms=20),
        shadow(policy("span_count", min_spans=1)),
        shadow_policies=[policy("latency", threshold_ms=9)],
    )
    made.send(0, span(1, name="a"))
    made.stop(10)
    (verdict,) = made.verdicts
    assert verdict.votes == {"latency": "not_sampled"}
    assert verdict.explained() == [
        PolicyVote(
            "latency", "latency", "not_sampled", "it took 10 ms, not longer than 20 ms; its longest span, a, took 10 ms"
        ),
        PolicyVote("span_count", "span_count", "sampled", "it has 1 span, at least 1", shadow=True),
        PolicyVote("latency", "latency", "sampled", "it took 10 ms, longer than 9 ms", shadow=True),
    ]
    reason = "it took 10 ms, longer than 9 ms"
    assert decision_line(verdict)["shadow"] == {
        "votes": {"span_count": "sampled"},
        "set": {"decision": "sampled", "policy": "latency", "reason": reason, "votes": {"latency": "sampled"}},
    }


def test_without_shadows_a_line_tells_nothing_of_them(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"))
    made.send(0, span(1))
    made.stop(10)
    assert "shadow" not in decision_line(made.verdicts[0])


def test_a_shadow_that_is_trusted_after_a_reload_goes_on_from_its_memory(
    sampler: Make, span: Make, policy: Make
) -> None:
    limit = policy("rate_limiting", spans_per_second=1, burst_capacity=1)
    before, after = sampler(shadow(limit)), sampler(limit)
    before.send(0, span(1))
    before.pass_time(2)
    after.under_test.take_over(before.under_test, START + 2 * 1000 * MS)
    after.send(0.2, span(2))
    after.stop(2.2)
    assert before.verdicts[0].shadow.votes == {"rate_limiting": "sampled"}
    assert after.decisions == {2: "not_sampled"}


@pytest.mark.parametrize("key", ["policies", "shadow_policies"])
def test_parts_of_traces_are_not_judged_by_shadows(policy: Make, key: str) -> None:
    with pytest.raises(ValidationError, match="there no policy can be tried"):
        FACTORY.Config.model_validate({"sampling_strategy": "span-ingest", key: [shadow(policy("always_sample"))]})


def test_names_are_unique_in_the_alternative_list_by_itself(policy: Make) -> None:
    every = policy("always_sample")
    FACTORY.Config.model_validate({"policies": [every], "shadow_policies": [every]})
    with pytest.raises(ValidationError, match="duplicate policy name 'always_sample'"):
        FACTORY.Config.model_validate({"shadow_policies": [every, every]})


def test_shadows_alone_keep_nothing_and_validate_says_so(policy: Make) -> None:
    tried = shadow(policy("always_sample"))
    config: Any = FACTORY.Config.model_validate({"policies": [tried], "shadow_policies": [tried]})
    assert config.warnings() == [
        (("policies",), "without a policy that is no shadow no trace is kept"),
        (("shadow_policies", 0, "shadow"), "has no effect: they all are only tried"),
    ]


@pytest.mark.parametrize("first", [{}, {"policies": [shadow(named("rate_limiting", "tried", spans_per_second=1))]}])
def test_an_alternative_chooses_among_the_traces_of_a_second(sampler: Make, span: Make, first: Any) -> None:
    limit = named("rate_limiting", spans_per_second=5)
    decides, tried = (
        sampler(gates=[USE_TRACE_STATE], **settings)
        for settings in (
            {"policies": [limit]},
            {"policies": [named("always_sample")], "shadow_policies": [limit]} | first,
        )
    )
    for made in (decides, tried):
        for number in range(200):
            made.send(number / 20, span(number, trace_state=f"ot=rv:{number * 2654435761 % 2**32:014x}"))
        made.stop(20)
    kept = {number for number, decision in decides.decisions.items() if decision == "sampled"}
    assert 10 < len(kept) < 100
    counted = tried.counted("shadow_policies_traces")
    assert sum(count for by, count in counted.items() if "both" in by or "shadow," in by) == len(kept)


def test_shards_divide_the_rates_of_shadows_too(sampler: Make, span: Make, policy: Make) -> None:
    limits = policy("rate_limiting", spans_per_second=2, burst_capacity=1)
    made = sampler(shadow(limits), shadow_policies=[limits], num_shards=2)
    for number in range(40):
        made.send(number / 10, span(number))
    made.stop(10)
    added = made.counted("shadow_traces")["change=added,policy=rate_limiting"]
    assert added == made.counted("shadow_policies_traces")["kept_by=shadow,policy=rate_limiting"]
    assert 6 <= added <= 10
