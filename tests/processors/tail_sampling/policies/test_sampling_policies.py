"""What each policy says yes to."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from podtrail_processors.tail_sampling.policies.probabilistic import fnv1a, threshold

from podtrail.otlp import Batch, Status
from podtrail.testing.attempts import MadeAttempt, no_room

MS = 1_000_000
SALT = fnv1a(b"default-hash-seed")
ERROR, OK, UNSET = Status(2, "it failed"), Status(1, ""), None

Make = Callable[..., Any]


@pytest.fixture(name="says")
def _says(sampler: Make, span: Make, policy: Make) -> Callable[..., str]:
    """Return what tells a policy's decision about one trace, given as what its spans are made of."""

    def says(about: dict[str, Any], *spans: dict[str, Any]) -> str:
        made = sampler(about)
        for number, one in enumerate(spans, 1):
            made.send(0, span(1, number, **one))
        made.stop(10)
        decision: str = made.decisions[1]
        return decision

    return says


@pytest.mark.parametrize(
    ("codes", "spans", "decision"),
    [
        (["ERROR"], [OK, UNSET], "not_sampled"),
        (["ERROR"], [OK, ERROR], "sampled"),
        (["OK", "UNSET"], [ERROR, OK], "sampled"),
        (["UNSET"], [ERROR, UNSET], "sampled"),
        (["UNSET"], [ERROR, OK], "not_sampled"),
    ],
)
def test_status_code_looks_for_any_span(
    says: Make, policy: Make, codes: list[str], spans: Sequence[Status | None], decision: str
) -> None:
    assert says(policy("status_code", status_codes=codes), *({"status": status} for status in spans)) == decision


@pytest.mark.parametrize(
    ("upper", "milliseconds", "decision"),
    [
        (0, [(0, 4500)], "not_sampled"),
        (0, [(0, 5000)], "not_sampled"),
        (0, [(0, 5000.999)], "not_sampled"),
        (0, [(0, 5001)], "sampled"),
        (0, [(0, 3000), (2500, 5500)], "sampled"),
        (6000, [(0, 6000)], "sampled"),
        (6000, [(0, 6000.999)], "sampled"),
        (6000, [(0, 6001)], "not_sampled"),
        (6000, [(0, 5500), (0, 9000)], "sampled"),
        (6000, [(0, 9000), (0, 5500)], "not_sampled"),
    ],
)
def test_latency_is_the_time_from_the_first_start_to_the_last_end(
    says: Make, policy: Make, upper: int, milliseconds: Sequence[tuple[float, float]], decision: str
) -> None:
    about = policy("latency", threshold_ms=5000, upper_threshold_ms=upper)
    times = [{"start": MS + round(start * MS), "end": MS + round(end * MS)} for start, end in milliseconds]
    assert says(about, *times) == decision


def test_latency_takes_a_start_of_zero_as_not_set(says: Make, policy: Make) -> None:
    about = policy("latency", threshold_ms=5)
    assert says(about, {"start": 10 * MS, "end": 12 * MS}, {"start": 0, "end": 12 * MS}) == "sampled"
    assert says(about, {"start": 0, "end": 2 * MS}, {"start": 10 * MS, "end": 12 * MS}) == "not_sampled"


@pytest.mark.parametrize(
    ("settings", "value", "decision"),
    [
        ({"min_value": 10, "max_value": 20}, 10, "sampled"),
        ({"min_value": 10, "max_value": 20}, 20, "sampled"),
        ({"min_value": 10, "max_value": 20}, 9, "not_sampled"),
        ({"min_value": 100}, 200, "sampled"),
        ({"max_value": 100}, 200, "not_sampled"),
        ({"min_value": 10, "max_value": 20}, 10.0, "not_sampled"),
        ({"max_value": 20}, "text counts as 0", "sampled"),
        ({"min_value": 10, "max_value": 20, "invert_match": True}, 15, "not_sampled"),
        ({"min_value": 10, "max_value": 20, "invert_match": True}, None, "sampled"),
    ],
)
def test_numeric_attribute_compares_integers_inclusively(
    says: Make, policy: Make, settings: dict[str, object], value: Any, decision: str
) -> None:
    attributes = {} if value is None else {"k": value}
    about = policy("numeric_attribute", key="k", **settings)
    assert says(about, {"attributes": attributes}) == decision
    assert says(about, {"resource": attributes}) == decision


@pytest.mark.parametrize(
    ("settings", "value", "decision"),
    [
        ({"values": ["a", "b"]}, "b", "sampled"),
        ({"values": ["a", "b"]}, "B", "not_sampled"),
        ({"values": ["v[0-9]+.HealthCheck$"], "enabled_regex_matching": True}, "grpc.v1.HealthCheck", "sampled"),
        ({"values": []}, "a", "not_sampled"),
        ({"values": [], "invert_match": True}, "a", "sampled"),
        ({"values": ["a"], "invert_match": True}, "a", "not_sampled"),
        ({"values": [".*"], "enabled_regex_matching": True}, 5, "not_sampled"),
    ],
)
def test_string_attribute_matches_exactly_or_searches(
    says: Make, policy: Make, settings: dict[str, object], value: Any, decision: str
) -> None:
    assert says(policy("string_attribute", key="k", **settings), {"attributes": {"k": value}}) == decision


def test_boolean_attribute_takes_another_type_as_false(says: Make, policy: Make) -> None:
    about = policy("boolean_attribute", key="k", value=False)
    assert says(about, {"attributes": {"k": "true"}}) == "sampled"
    assert says(about, {"attributes": {"k": True}}) == "not_sampled"
    assert says(about, {"attributes": {"other": False}}) == "not_sampled"


def test_span_count_is_inclusive(says: Make, policy: Make) -> None:
    assert says(policy("span_count", min_spans=2, max_spans=3), {}, {}) == "sampled"
    assert says(policy("span_count", min_spans=2, max_spans=3), {}, {}, {}, {}) == "not_sampled"


def test_trace_flags_looks_at_the_sampled_bit(says: Make, policy: Make) -> None:
    assert says(policy("trace_flags"), {"flags": 0}, {"flags": 257}) == "sampled"
    assert says(policy("trace_flags"), {"flags": 256}) == "not_sampled"


@pytest.mark.parametrize(
    ("state", "decision"),
    [
        ("vendor=a", "sampled"),
        ("x=y, vendor=a ,z=1", "sampled"),
        ("tenant@vendor=a,vendor=a", "sampled"),
        ("vendor=b,x=y", "not_sampled"),
        ("vendor=non,a=vendor", "not_sampled"),
        ("vendor=a,Bad=key", "not_sampled"),
        ("vendor=a,vendor=a", "not_sampled"),
        ("vendor=a,x=", "not_sampled"),
        (",".join(["vendor=a", *(f"k{n}=v" for n in range(31))]), "sampled"),
        (",".join(["vendor=a", *(f"k{n}=v" for n in range(32))]), "not_sampled"),
    ],
)
def test_trace_state_reads_only_what_follows_the_w3c(says: Make, policy: Make, state: str, decision: str) -> None:
    about = policy("trace_state", key="vendor", values=["a"])
    assert says(about, {}, {"trace_state": state}) == decision


@pytest.mark.parametrize(
    ("id", "hash"),
    [
        ("0102030405060708090a0b0c0d0e0f10", 0xDBCF64D5420F4CAD),
        ("00000000000000000000000000000000", 0xE19536EED1BBAC3D),
        ("4bf92f3577b34da6a3ce929d0e0e4736", 0xA54533BA2E4970B5),
    ],
)
def test_probabilistic_hashes_as_the_collector_does(id: str, hash: int) -> None:  # noqa: A002
    assert fnv1a(bytes.fromhex(id), SALT) == hash


@pytest.mark.parametrize(
    ("percentage", "largest"),
    [
        (10, 0x19999999999999FF),
        (25, 0x3FFFFFFFFFFFFFFF),
        (33, 0x547AE147AE147BFF),
        (50, 0x7FFFFFFFFFFFFFFF),
        (-50, 0),
        (150, 2**64 - 1),
        (float("inf"), 2**64 - 1),
    ],
)
def test_probabilistic_thresholds_are_the_collectors(percentage: float, largest: int) -> None:
    assert threshold(percentage) == largest


@given(st.floats(min_value=1e-9, max_value=100), st.floats(min_value=1e-9, max_value=100))
def test_a_larger_share_keeps_all_that_a_smaller_one_keeps(one: float, other: float) -> None:
    assert (one <= other) == (threshold(one) <= threshold(other)) or threshold(one) == threshold(other)


def test_and_needs_all_of_its_policies(says: Make, policy: Make) -> None:
    both = [policy("status_code", status_codes=["ERROR"]), policy("latency", threshold_ms=5)]
    slow, fast = {"start": MS, "end": 9 * MS}, {"start": MS, "end": 2 * MS}
    assert says(policy("and", and_sub_policy=both), {"status": ERROR, **slow}) == "sampled"
    assert says(policy("and", and_sub_policy=both), {"status": ERROR, **fast}) == "not_sampled"
    assert says(policy("and", and_sub_policy=[]), fast) == "sampled"


def test_not_turns_its_policy_round(says: Make, policy: Make) -> None:
    about = policy("not", not_sub_policy=policy("status_code", status_codes=["ERROR"]))
    assert says(about, {"status": ERROR}) == "not_sampled"
    assert says(about, {"status": OK}) == "sampled"


def test_drop_wins_over_what_stands_before_it(sampler: Make, span: Make, policy: Make) -> None:
    healthy = policy("string_attribute", key="path", values=["/healthz"])
    made = sampler(policy("always_sample"), policy("drop", drop_sub_policy=[healthy]))
    made.send(0, span(1, attributes={"path": "/healthz"}), span(2))
    made.stop(5)
    assert made.decisions == {1: "dropped", 2: "sampled"}
    assert made.verdicts[0].policy == "drop"
    assert made.verdicts[0].votes == {"drop": "dropped"}


def test_the_first_that_says_yes_names_the_decision(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("status_code", status_codes=["ERROR"]), policy("always_sample"), policy("span_count"))
    made.send(0, span(1))
    made.stop(5)
    (verdict,) = made.verdicts
    assert (verdict.policy, verdict.reason) == ("always_sample", "everything is kept")
    assert verdict.votes == {"status_code": "not_sampled", "always_sample": "sampled", "span_count": "sampled"}


@pytest.mark.parametrize(
    ("settings", "attempt", "decision"),
    [
        ({"results": ["Unschedulable", "Error"]}, no_room(), "sampled"),
        ({"results": ["Unschedulable", "Error"]}, MadeAttempt(), "not_sampled"),
        ({"results": ["Error"]}, no_room(), "not_sampled"),
        ({"results": ["Success"]}, MadeAttempt(), "sampled"),
    ],
)
def test_scheduling_result_looks_at_the_root_alone(
    sampler: Make, policy: Make, settings: dict[str, object], attempt: MadeAttempt, decision: str
) -> None:
    assert _decision_about(sampler(policy("scheduling_result", **settings)), attempt) == decision


@pytest.mark.parametrize(
    ("settings", "decision"),
    [
        ({"threshold": "199ms"}, "sampled"),
        ({"threshold": "200ms"}, "not_sampled"),
        ({"phases": {"filter": "90ms"}}, "sampled"),
        ({"phases": {"filter": "110ms", "postBind": "1ms"}}, "not_sampled"),
        ({"plugins": {"NodeResourcesFit": "10ms"}}, "sampled"),
        ({"plugins": {"NodeResourcesFit": "1s"}}, "not_sampled"),
        ({"queue_wait": "1499ms"}, "sampled"),
        ({"queue_wait": "1500ms"}, "not_sampled"),
        ({"queue_wait": "10s", "threshold": "10ms"}, "sampled"),
    ],
)
def test_slow_attempt_compares_the_whole_and_its_parts(
    sampler: Make, policy: Make, settings: dict[str, object], decision: str
) -> None:
    attempt = no_room(duration=200 * MS, queue_wait_ms=1500)
    assert _decision_about(sampler(policy("slow_attempt", **settings)), attempt) == decision


@pytest.mark.parametrize(
    ("type", "settings", "reason"),
    [
        ("scheduling_result", {"results": ["Unschedulable", "Error"]}, "scheduler.result=Unschedulable"),
        ("slow_attempt", {"threshold": "100ms"}, "SchedulePod took 200 ms, longer than 100ms"),
        ("slow_attempt", {"threshold": "1s", "phases": {"filter": "50ms"}}, "filter took 100 ms, longer than 50ms"),
        ("slow_attempt", {"queue_wait": "1s"}, "its Pod waited 1500 ms in the queue, longer than 1s"),
        ("latency", {"threshold_ms": 150}, "it took 200 ms, longer than 150 ms"),
        ("status_code", {"status_codes": ["ERROR", "OK"]}, "a span has status ERROR or OK"),
        ("probabilistic", {"sampling_percentage": 100}, "it is among the 100% chosen by trace id"),
    ],
)
def test_a_verdict_says_why_in_words(
    sampler: Make,
    policy: Make,
    type: str,
    settings: dict[str, object],
    reason: str,
) -> None:
    made = sampler(policy(type, **settings))
    _decision_about(made, no_room(duration=200 * MS, queue_wait_ms=1500))
    assert made.verdicts[0].reason == reason


def test_slow_attempt_says_nothing_about_other_traces(says: Make, policy: Make) -> None:
    about = policy("slow_attempt", threshold="1ms", phases={"filter": "1ms"})
    assert says(about, {"name": "filter", "start": MS, "end": 900 * MS}) == "not_sampled"


def _decision_about(made: Any, attempt: MadeAttempt) -> str:
    made.out += made.under_test.add(Batch(attempt.groups(), 0), 0).out
    made.out += made.under_test.drain(1)
    (verdict,) = made.verdicts
    decision: str = verdict.decision
    return decision
