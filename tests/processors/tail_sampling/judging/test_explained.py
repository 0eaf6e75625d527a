"""Every verdict, on kept and on dropped traces, can say what each policy voted and why: with span and value."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from podtrail_processors.tail_sampling.config.sampler import TopPolicy
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator

from podtrail.otlp import Decision, PolicyVote, Status

MS = 1_000_000
START = 1_790_000_000_000_000_000

Make = Callable[..., Any]

NAME = "GET /x"
OTHER = {"name": "query", "end": START + 3 * MS}


@pytest.fixture(name="votes")
def _votes(sampler: Make, span: Make) -> Callable[..., Sequence[PolicyVote]]:
    """Return what tells the votes on one trace with a span `GET /x` of 9 ms and a `query` of 3 ms."""

    def votes(*policies: object, gates: Sequence[str] = (), settings: Any = None, **root: Any) -> Sequence[PolicyVote]:
        made = sampler(*policies, gates=gates, **(settings or {}))
        root = {"name": NAME, "end": START + 9 * MS} | root
        made.send(0, span(1, 1, **root), span(1, 2, parent=1, **OTHER))
        made.stop(10)
        (verdict,) = made.verdicts
        found: Sequence[PolicyVote] = verdict.explained()
        return found

    return votes


ATTEMPT = {"name": "SchedulePod", "attributes": {"scheduler.result": "Success", "scheduler.queue_wait_ms": 7}}
KEYED = {"attributes": {"http.status_code": 200, "http.method": "GET", "cached": True}}
CASES: Sequence[tuple[str, dict[str, Any], dict[str, Any], Decision, str]] = [
    ("always_sample", {}, {}, "sampled", "everything is kept"),
    ("latency", {"threshold_ms": 5}, {}, "sampled", "it took 9 ms, longer than 5 ms"),
    (
        "latency",
        {"threshold_ms": 5000},
        {},
        "not_sampled",
        "it took 9 ms, not longer than 5000 ms; its longest span, GET /x, took 9 ms",
    ),
    (
        "latency",
        {"threshold_ms": 9, "upper_threshold_ms": 20},
        {},
        "not_sampled",
        "it took 9 ms, not longer than 9 ms and at most 20 ms; its longest span, GET /x, took 9 ms",
    ),
    (
        "status_code",
        {"status_codes": ["ERROR"]},
        {"status": Status(2, "no room")},
        "sampled",
        "span GET /x has status ERROR: no room",
    ),
    (
        "status_code",
        {"status_codes": ["ERROR"]},
        {"status": Status(1, "")},
        "not_sampled",
        "no span has status ERROR (2 spans: 1 OK, 1 UNSET)",
    ),
    (
        "numeric_attribute",
        {"key": "http.status_code", "min_value": 200},
        KEYED,
        "sampled",
        "http.status_code is 200 on span GET /x",
    ),
    (
        "numeric_attribute",
        {"key": "http.status_code", "min_value": 500},
        KEYED,
        "not_sampled",
        "http.status_code is 200 on span GET /x; wanted is: http.status_code is at least 500",
    ),
    (
        "string_attribute",
        {"key": "http.method", "values": ["PUT", "POST"]},
        KEYED,
        "not_sampled",
        "http.method is GET on span GET /x; wanted is: http.method is one of PUT, POST",
    ),
    (
        "string_attribute",
        {"key": "namespace", "values": ["prod"]},
        {"resource": {"namespace": "prod"}},
        "sampled",
        "namespace is prod on the resource",
    ),
    (
        "string_attribute",
        {"key": "http.method", "values": ["GET"], "invert_match": True},
        KEYED,
        "not_sampled",
        "http.method is GET on span GET /x; wanted is: http.method is none of GET",
    ),
    (
        "string_attribute",
        {"key": "absent", "values": ["x"]},
        KEYED,
        "not_sampled",
        "no span and no resource has absent; wanted is: absent is one of x",
    ),
    ("boolean_attribute", {"key": "cached", "value": True}, KEYED, "sampled", "cached is true on span GET /x"),
    (
        "boolean_attribute",
        {"key": "cached", "value": False},
        KEYED,
        "not_sampled",
        "cached is true on span GET /x; wanted is: cached is false",
    ),
    ("span_count", {"min_spans": 2}, {}, "sampled", "it has 2 spans, at least 2"),
    ("span_count", {"min_spans": 3}, {}, "not_sampled", "it has 2 spans, fewer than 3"),
    ("span_count", {"max_spans": 1}, {}, "not_sampled", "it has 2 spans, more than 1"),
    ("trace_flags", {}, {"flags": 1}, "sampled", "a span carries the sampled flag"),
    ("trace_flags", {}, {}, "not_sampled", "none of its 2 spans carries the sampled flag"),
    (
        "trace_state",
        {"key": "tier", "values": ["gold"]},
        {"trace_state": "tier=gold"},
        "sampled",
        "tier=gold in the trace state",
    ),
    (
        "trace_state",
        {"key": "tier", "values": ["gold"]},
        {"trace_state": "tier=tin"},
        "not_sampled",
        "tier is tin in the trace state, not one of gold",
    ),
    ("trace_state", {"key": "tier", "values": ["gold"]}, {}, "not_sampled", "no span has a trace state"),
    (
        "trace_state",
        {"key": "tier", "values": ["gold"]},
        {"trace_state": "a=b"},
        "not_sampled",
        "tier is in no trace state (there is a=b)",
    ),
    (
        "probabilistic",
        {"sampling_percentage": 100},
        {},
        "sampled",
        "it is among the 100% chosen by trace id",
    ),
    (
        "probabilistic",
        {"sampling_percentage": 1},
        {},
        "not_sampled",
        "the hash of its trace id puts it at 88.12%, not within the 1% chosen",
    ),
    ("rate_limiting", {"spans_per_second": 5}, {}, "sampled", "it is within 5 spans a second"),
    (
        "rate_limiting",
        {"spans_per_second": 1, "burst_capacity": 1},
        {},
        "not_sampled",
        "there was no room for its 2 spans within 1 spans a second",
    ),
    ("bytes_limiting", {"bytes_per_second": 500}, {}, "sampled", "it is within 500 bytes a second"),
    (
        "bytes_limiting",
        {"bytes_per_second": 10},
        {},
        "not_sampled",
        "there was no room for its 147 bytes or so within 10 bytes a second",
    ),
    ("scheduling_result", {"results": ["Success"]}, ATTEMPT, "sampled", "scheduler.result=Success"),
    ("scheduling_result", {"results": ["Error"]}, ATTEMPT, "not_sampled", "scheduler.result=Success, not Error"),
    ("scheduling_result", {"results": ["Error"]}, {}, "not_sampled", "it has no span SchedulePod"),
    (
        "slow_attempt",
        {"threshold": "1ms", "phases": {"query": "2ms"}},
        ATTEMPT,
        "sampled",
        "SchedulePod took 9 ms, longer than 1ms",
    ),
    (
        "slow_attempt",
        {"threshold": "1s", "phases": {"query": "2s"}, "queue_wait": "10s"},
        ATTEMPT,
        "not_sampled",
        (
            "its Pod waited 7 ms in the queue, not longer than 10s; "
            "SchedulePod took 9 ms, not longer than 1s, query took 3 ms, not longer than 2s"
        ),
    ),
]


@pytest.mark.parametrize(("type", "settings", "root", "decision", "why"), CASES)
def test_a_policy_says_why_with_span_and_value(
    votes: Make, policy: Make, type: str, settings: dict[str, Any], root: dict[str, Any], decision: Decision, why: str
) -> None:
    assert votes(policy(type, "mine", **settings), **root) == [PolicyVote("mine", type, decision, why)]


UNTRIED = {"python"}  # says what its user's code says
LEAST_SETTINGS: dict[str, dict[str, Any]] = {
    "attempts": {"min_attempts": 2},
    "latency_quantile": {},
    "numeric_attribute": {"min_value": 1},
    "ottl_condition": {"span": ["true"]},
    "rejected_by": {"plugins": ["NodeResourcesFit"]},
    "queue_wait": {"threshold": "1s"},
    "scheduling_result": {"results": ["Error"]},
    "slow_attempt": {"threshold": "1s"},
    "status_code": {"status_codes": ["ERROR"]},
    "target_rate": {"spans_per_second": 1},
    "not": {"not_sub_policy": {"name": "all", "type": "always_sample"}},
}


@pytest.mark.parametrize("type", sorted(TopPolicy.types() - {"always_sample"} - UNTRIED))
def test_every_type_of_policy_has_words_of_its_own_for_a_no(type: str, policy: Make) -> None:
    made = TopPolicy.model_validate(policy(type, **LEAST_SETTINGS.get(type, {}))).create()
    assert made.__class__.why_not is not Evaluator.why_not


def parts(*policies: dict[str, object], of: str) -> dict[str, object]:
    """Return a policy of several parts."""
    return {"name": of, "type": of, of: {f"{of}_sub_policy": list(policies)}}


def test_a_part_that_said_no_is_told_by_its_name(votes: Make, policy: Make) -> None:
    long = policy("span_count", "long", min_spans=2), policy("latency", "slow", threshold_ms=10)
    both, either = votes(parts(*long, of="and"), policy("always_sample"))
    assert both.why == "slow: it took 9 ms, not longer than 10 ms; its longest span, GET /x, took 9 ms"
    assert either.decision == "sampled"


def test_a_drop_policy_has_the_last_word(votes: Make, policy: Make) -> None:
    dropped, kept = votes(policy("always_sample"), parts(policy("span_count", "long", min_spans=2), of="drop"))
    assert dropped == PolicyVote("drop", "drop", "dropped", "it has 2 spans, at least 2")
    assert (kept.decision, kept.why) == (None, "it was not asked: another policy had the last word before")


def test_why_one_said_no_is_why_its_opposite_says_yes(votes: Make, policy: Make) -> None:
    slow = policy("latency", "slow", threshold_ms=10)
    slowness, opposite = votes(slow, {"name": "n", "type": "not", "not": {"not_sub_policy": slow}})
    assert (slowness.decision, opposite.decision) == ("not_sampled", "sampled")
    assert slowness.why == opposite.why


@pytest.mark.parametrize(
    ("total", "decision", "why"),
    [
        (10, "sampled", "long: it has 2 spans, at least 2"),
        (1, "not_sampled", "long: it has 2 spans, at least 2, but there was no room for 2 spans of 1 a second"),
    ],
)
def test_a_composite_says_which_part_and_whether_there_was_room(
    votes: Make, policy: Make, total: int, decision: Decision, why: str
) -> None:
    share = {"policy": "long", "percent": 100}
    sub = [policy("latency", "slow", threshold_ms=10), policy("span_count", "long", min_spans=2)]
    settings = {"max_total_spans_per_second": total, "composite_sub_policy": sub, "rate_allocation": [share]}
    (vote,) = votes(policy("composite", "c", **settings))
    assert vote == PolicyVote("c", "composite", decision, why)


def test_a_limit_within_others_is_not_asked_again(votes: Make, policy: Make) -> None:
    limit = policy("rate_limiting", "limit", spans_per_second=1, burst_capacity=1)
    (vote,) = votes(parts(policy("always_sample", "all"), limit, of="and"))
    assert vote.why == "limit: there was no room for its 2 spans within 1 spans a second"


def test_conditions_say_what_holds_and_what_has_no_answer(votes: Make, policy: Make) -> None:
    holds, fails = votes(
        policy("ottl_condition", "holds", span=['name == "query"']),
        policy("ottl_condition", "fails", span=['Substring(name, 1, 99) == "x"'], error_mode="propagate"),
    )
    assert holds.decision == "sampled"
    assert holds.why == 'span query meets name == "query"'
    assert fails.decision is None
    assert fails.why.startswith('it failed: Substring(name, 1, 99) == "x": ')


def test_after_the_first_match_nobody_else_was_asked(votes: Make, policy: Make) -> None:
    settings = {"sample_on_first_match": True}
    first, second = votes(policy("always_sample", "a"), policy("always_sample", "b"), settings=settings)
    assert (first.decision, second.decision) == ("sampled", None)
    assert second.why == "it was not asked: another policy had the last word before"


def test_values_are_told_shortly(votes: Make, policy: Make) -> None:
    (vote,) = votes(policy("string_attribute", key="k", values=["y"]), attributes={"k": "x" * 10_000}, name="n" * 9_000)
    assert len(vote.why) < 600
    assert "x…" in vote.why
    assert "n…" in vote.why


def test_a_trace_that_nobody_was_asked_about_has_no_votes(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), num_traces=1)
    made.send(0, span(1))
    made.send(0, span(2))
    evicted, *_ = made.verdicts
    assert (evicted.decision, evicted.explained()) == ("dropped", [])


def test_to_explain_takes_nothing_from_a_budget(sampler: Make, span: Make, policy: Make) -> None:
    left_alone, asked = (sampler(policy("rate_limiting", spans_per_second=2), decision_wait="1s") for _ in range(2))
    for number in range(20):
        for made in (left_alone, asked):
            made.send(number / 10, span(number))
        assert all(vote.why for verdict in asked.verdicts for vote in verdict.explained())
    for made in (left_alone, asked):
        made.stop(10)
    assert left_alone.decisions == asked.decisions
    assert set(asked.decisions.values()) == {"sampled", "not_sampled"}


def test_a_part_that_decided_while_the_trace_came_is_told_as_such(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("span_count", min_spans=2), sampling_strategy="span-ingest")
    made.send(0, span(1, 1))
    made.send(1, span(1, 2))
    (verdict,) = made.verdicts
    assert verdict.explained() == [PolicyVote("span_count", "span_count", "sampled", "it has 2 spans, at least 2")]


def test_a_trace_of_which_no_part_matched_is_explained_as_a_whole(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("span_count", min_spans=3), policy("trace_flags"), sampling_strategy="span-ingest")
    made.send(0, span(1, 1))
    made.send(1, span(1, 2))
    made.stop(10)
    (verdict,) = made.verdicts
    told = ["it has 2 spans, fewer than 3", "none of its 2 spans carries the sampled flag"]
    assert [(vote.decision, vote.why) for vote in verdict.explained()] == [("not_sampled", why) for why in told]


def test_nothing_of_it_depends_on_the_verdict_being_fresh(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("ottl_condition", span=['attributes["n"] > 1']), policy("latency", threshold_ms=20))
    for number in range(4):
        made.send(0, span(number, name=f"n{number}", attributes={"n": number}))
    made.stop(10)
    told = [[vote.decision for vote in verdict.explained()] for verdict in reversed(made.verdicts)]
    assert told == [["sampled", "not_sampled"]] * 2 + [["not_sampled"] * 2] * 2
    assert all("10 ms" in verdict.explained()[1].why for verdict in made.verdicts)
