"""`stress_relief`: when it begins and ends, what it decides, and what it says of it."""

import logging
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from podtrail_processors.probability import probability_of, randomness_of, read_sampling_state
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.config.stress_relief import StressReliefConfig
from podtrail_processors.tail_sampling.leaving.stress_relief import Stress

from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.otlp import SpanView, Status, split
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
ERROR = Status(2, "")
HIGH, LOW = 2**56 - 1, 1
"""Ids of a trace that is among any share, and of one that is among none but all."""

Make = Callable[..., Any]


@given(st.lists(st.tuples(st.integers(0, 20), st.floats(0, 200)), max_size=50))
def test_stress_lasts_its_least_time_and_until_the_level_is_below_the_lower_mark(
    steps: list[tuple[int, float]],
) -> None:
    stress, now, began = Stress(90, 75, 10), 0, None
    for pause, level in steps:
        now += pause
        before = stress.since
        assert stress.update(level, now) == (before != stress.since)
        if before is None:
            assert (stress.since is not None) == (level >= 90)
            began = now
        else:
            assert began is not None
            assert (stress.since is None) == (level < 75 and now >= began + 10)


@pytest.fixture(name="stressed")
def _stressed(sampler: Make, policy: Make) -> Callable[..., Any]:
    """Return what makes a sampler under stress for good, with a policy that keeps nothing of it."""

    def stressed(*policies: object, errors_per_second: float = 100, **settings: object) -> Any:
        relief = {"mode": "always", "errors_per_second": errors_per_second, "sampling_percentage": 25}
        return sampler(*policies or [policy("span_count", min_spans=1000)], stress_relief=relief, **settings)

    return stressed


@pytest.fixture(name="measured")
def _measured(sampler: Make, policy: Make) -> Callable[..., Any]:
    """Return what makes a sampler with what it is told of lag and memory: `made.lag`, `made.used`."""

    def measured(**relief: object) -> Any:
        settings = {"policies": [policy("always_sample")], "decision_wait": "2s"}
        made = sampler()
        made.lag = made.used = 0
        made.context = replace(made.context, lag=lambda: made.lag, memory_used=lambda: made.used)
        config = FACTORY.Config.model_validate(settings | {"stress_relief": {"mode": "auto"} | relief})
        made.under_test = FACTORY.create(config, made.context)
        return made

    return measured


def states(made: Any) -> dict[int, set[str]]:
    """Return the trace states of the spans of each trace that came out."""
    found: dict[int, set[str]] = {}
    for batch in made.out:
        for group in batch.groups:
            for view in map(SpanView, split(group.spans)):
                found.setdefault(int.from_bytes(view.trace_id, "big"), set()).add(view.trace_state)
    return found


def test_new_traces_are_decided_at_once_by_their_id_and_tell_their_threshold(stressed: Make, span: Make) -> None:
    made = stressed()
    made.send(0, span(HIGH), span(LOW))
    assert made.under_test.held() == 0
    assert made.decisions == {HIGH: "sampled", LOW: "not_sampled"}
    assert states(made) == {HIGH: {"ot=th:c"}}
    kept, other = made.verdicts
    assert (kept.policy, kept.reason) == ("stress_relief", "stress relief: among the 25 % chosen by trace id")
    assert (other.policy, other.reason) == ("", "stress relief: not among the 25 % chosen by trace id")
    assert made.counted("traces_decided_under_stress") == {"decision=sampled": 1, "decision=not_sampled": 1}
    assert made.context.ledger.sampled_out == 1


def test_thresholds_are_told_once_where_all_tell_them(sampler: Make, span: Make) -> None:
    relief = {"mode": "always", "sampling_percentage": 25}
    made = sampler(gates=[USE_TRACE_STATE], stress_relief=relief)
    made.send(0, span(HIGH), span(LOW))
    assert states(made) == {HIGH: {"ot=th:c"}}


def test_after_the_stress_what_it_decided_is_forgotten_though_nothing_comes(measured: Make, span: Make) -> None:
    made = measured(memory_limit_mib=1)
    made.used = 2 << 20
    made.send(0, span(HIGH), span(LOW))
    made.used = 0
    made.under_test.expire(START + 20 * SECOND, 100)
    while (due := made.under_test.deadline()) is not None:
        assert due <= START + 30 * SECOND
        made.under_test.expire(due, 100)
    assert made.under_test._stress_relief.remembered == 0


def test_spans_that_follow_get_the_same_answer_without_another_verdict(stressed: Make, span: Make) -> None:
    made = stressed()
    for number in range(1, 4):
        made.send(number, span(HIGH, number), span(LOW, number))
    assert made.kept == [(HIGH, 1), (HIGH, 2), (HIGH, 3)]
    assert len(made.verdicts) == 2
    assert made.context.ledger.sampled_out == 3


def test_given_randomness_and_earlier_sampling_count(stressed: Make, span: Make) -> None:
    made = stressed()
    made.send(0, span(1, trace_state="ot=rv:ffffffffffffff"), span(HIGH, trace_state="ot=th:e"))
    assert states(made) == {1: {"ot=rv:ffffffffffffff;th:c"}, HIGH: {"ot=th:e"}}


def test_a_trace_with_an_error_is_kept_with_all_that_follows(stressed: Make, span: Make) -> None:
    made = stressed()
    made.send(0, span(1, 1, status=ERROR), span(2, 1))
    made.send(1, span(1, 2), span(2, 2, status=ERROR))
    made.send(2, span(1, 3), span(2, 3))
    assert made.kept == [(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)]
    assert states(made) == {1: {"ot=th:0"}, 2: {"ot=th:0"}}
    assert [(verdict.decision, verdict.reason) for verdict in made.verdicts if verdict.policy] == [
        ("sampled", 'stress relief: span "span" has status ERROR')
    ] * 2


def test_of_very_many_errors_a_share_is_kept_from_which_their_number_can_be_recovered(
    stressed: Make, span: Make
) -> None:
    made, rng = stressed(errors_per_second=8), random.Random(5)
    for number in range(2000):
        made.send(number / 100, span(rng.getrandbits(128), status=ERROR), span(rng.getrandbits(120) << 8))
    kept = {trace: read_sampling_state(state.pop()) for trace, state in states(made).items()}
    failed = {verdict.trace_id for verdict in made.verdicts if "ERROR" in verdict.reason or not verdict.policy}
    assert len(kept) < 4_000 * 0.4
    assert all((state.threshold or 0) <= randomness_of(trace.to_bytes(16, "big")) for trace, state in kept.items())
    estimate = sum(1 / probability_of(state.threshold or 0) for state in kept.values())
    assert estimate == pytest.approx(4_000, rel=0.15)
    assert failed


def test_errors_are_as_others_where_none_are_asked_for(stressed: Make, span: Make) -> None:
    made = stressed(errors_per_second=0)
    made.send(0, span(LOW, status=ERROR))
    assert made.decisions == {LOW: "not_sampled"}


def test_failed_attempts_are_kept(stressed: Make, span: Make) -> None:
    made = stressed()
    attributes = {"scheduler.result": "Unschedulable"}
    made.send(0, span(1, name="SchedulePod", attributes=attributes), span(2, name="filter", attributes=attributes))
    assert made.decisions == {1: "sampled", 2: "not_sampled"}


def test_a_trace_is_told_of_once_though_errors_beyond_their_number_follow(stressed: Make, span: Make) -> None:
    made = stressed(errors_per_second=0.001)
    made.send(0, *(span((number << 64) + 1, status=ERROR) for number in range(100)))
    made.send(1, *(span((number << 64) + 1, 2, status=ERROR) for number in range(100)))
    told = [verdict.trace_id for verdict in made.verdicts]
    assert len(told) == len(set(told)) == 100
    assert 0 < len(made.kept) < 20


def test_late_errors_rescue_what_was_not_kept_under_stress(stressed: Make, span: Make) -> None:
    made = stressed(errors_per_second=0, rescue_late_errors=True)
    for number in range(1, 4):
        made.send(number, span(LOW, number, status=ERROR if number == 2 else None))
    assert made.kept == [(LOW, 2), (LOW, 3)]
    assert [verdict.policy for verdict in made.verdicts] == ["", "rescue_late_errors"]


def test_what_is_held_already_takes_its_usual_way(measured: Make, span: Make) -> None:
    made = measured()
    made.send(0, span(LOW, 1))
    made.lag = 5 * SECOND
    made.send(0.5, span(LOW, 2), span(LOW + 1, 1))
    made.stop(10)
    assert made.decisions == {LOW: "sampled", LOW + 1: "not_sampled"}
    assert made.kept == [(LOW, 1), (LOW, 2)]


@pytest.mark.parametrize(
    ("relief", "cause"),
    [
        ({"maximum_lag": "10s"}, "decisions are 9.0 s late"),
        ({"memory_limit_mib": 100, "maximum_lag": 0}, "the process takes 95 % of memory_limit_mib"),
    ],
)
def test_begins_and_ends_with_a_line_in_the_log_and_a_gauge(
    measured: Make, span: Make, caplog: pytest.LogCaptureFixture, relief: dict[str, object], cause: str
) -> None:
    made = measured(**relief)
    made.lag, made.used = 9 * SECOND, 95 * 2**20
    with caplog.at_level(logging.INFO):
        made.send(0, span(LOW))
        assert made.counted("stress_relief_active") == {"": 1}
        made.lag, made.used = SECOND, 2**20
        made.send(9, span(LOW + 1))
        assert made.counted("stress_relief_active") == {"": 1}
        made.send(10, span(LOW + 2), span(LOW, 2))
        made.send(11.5, span(LOW + 1, 2))
        made.stop(20)
    assert made.counted("stress_relief_active") == {"": 0}
    assert [record.message for record in caplog.records] == [
        f"stress relief begins, {cause}: new traces are decided at once, 1 % of them kept by their trace id",
        "stress relief ends: 2 traces were decided at once, 0 of them kept",
    ]
    # What was decided under stress is not taken for a new trace when more of it comes.
    assert made.decisions == {LOW: "not_sampled", LOW + 1: "not_sampled", LOW + 2: "sampled"}


@pytest.mark.parametrize("relief", [{"maximum_lag": "10s"}, {"memory_limit_mib": 100, "maximum_lag": 0}])
def test_the_level_is_told_in_percent(measured: Make, span: Make, relief: dict[str, object]) -> None:
    made = measured(**relief)
    assert made.counted("stress_level") == {"": 0}
    for at, tenths in enumerate((0, 2, 4, 7)):
        made.lag, made.used = tenths * SECOND, tenths * 10 * 2**20
        made.send(at, span(at + 1))
        assert made.counted("stress_level") == {"": 10 * tenths}


def test_held_bytes_bring_relief_before_traces_have_to_be_decided_early(
    sampler: Make, span: Make, policy: Make
) -> None:
    made = sampler(policy("always_sample"), maximum_held_mib=1, stress_relief={"mode": "auto"})
    for number in range(1, 1001):
        made.send(number / 1000, span(number, attributes={"much": "x" * 2000}))
    assert 80 < made.counted("stress_level")[""] < 92
    assert made.counted("traces_decided_early") == {}
    made.stop(60)
    assert 300 < len(made.kept) < 600


def test_whoever_configures_no_relief_has_no_metrics_of_it(sampler: Make, policy: Make) -> None:
    assert not any("stress" in name for name in sampler(policy("always_sample")).context.metrics.snapshot())


def test_a_reload_goes_on_under_stress(measured: Make, span: Make) -> None:
    made, after = measured(), measured()
    made.lag = 5 * SECOND
    made.send(0, span(LOW, 1), span(LOW + 1, status=ERROR))
    after.under_test.take_over(made.under_test, START + SECOND)
    after.send(2, span(LOW, 2), span(LOW + 1, 2), span(LOW + 2))
    assert after.kept == [(LOW + 1, 2)]
    assert after.decisions == {LOW + 2: "not_sampled"}


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 4)])
def test_a_reload_with_other_shards_remembers_what_was_decided_under_stress(
    stressed: Make, sampler: Make, span: Make, policy: Make, before: int, after: int
) -> None:
    made = stressed(num_shards=before)
    successor = sampler(policy("always_sample"), num_shards=after, stress_relief={"mode": "auto"})
    made.send(0, *(span(trace, 1) for trace in (HIGH, LOW, HIGH - 1, LOW + 1)))
    successor.under_test.take_over(made.under_test, START + SECOND)
    successor.send(2, *(span(trace, 2) for trace in (HIGH, LOW, HIGH - 1, LOW + 1)))
    successor.stop(100)
    assert successor.kept == [(HIGH, 2), (HIGH - 1, 2)]
    assert successor.decisions == {}


@pytest.mark.parametrize("settings", [{"num_shards": 4}, {"sampling_strategy": "span-ingest"}])
def test_shards_and_span_ingest_are_relieved_too(stressed: Make, span: Make, settings: dict[str, object]) -> None:
    made = stressed(**settings)
    made.send(0, span(HIGH), span(LOW))
    assert made.decisions == {HIGH: "sampled", LOW: "not_sampled"}


def test_a_decision_under_stress_is_remembered_in_the_caches(stressed: Make, span: Make) -> None:
    made = stressed(decision_cache={"sampled_cache_size": 10, "non_sampled_cache_size": 10})
    made.send(0, span(HIGH), span(LOW))
    made.send(1, span(HIGH, 2), span(LOW, 2))
    assert made.kept == [(HIGH, 1), (HIGH, 2)]
    assert made.under_test.held() == 0


@pytest.mark.parametrize("rate", [1e-300, 1e300])
def test_a_rate_of_errors_that_can_not_be_kept_to_is_an_error(sampler: Make, rate: float) -> None:
    with pytest.raises(ValueError, match="must be 0, or from 1e-06 to"):
        sampler(stress_relief={"mode": "always", "errors_per_second": rate})


def test_a_lower_mark_above_the_upper_one_is_an_error(sampler: Make) -> None:
    with pytest.raises(ValueError, match="deactivate_at_percentage must not be above"):
        sampler(stress_relief={"activate_at_percentage": 50})


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"mode": "always"}, ["always: no policy is asked about any trace"]),
        (
            {"mode": "auto", "maximum_lag": 0},
            ["without memory_limit_mib and maximum_lag only maximum_held_mib can bring relief"],
        ),
        ({"mode": "auto"}, []),
        ({}, []),
    ],
)
def test_warns_of_a_mode_that_is_hardly_meant(settings: dict[str, object], warned: list[str]) -> None:
    assert [text for _, text in StressReliefConfig.model_validate(settings).warnings()] == warned


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.3, 1.1, 4.0]), st.sampled_from([0, 5]), st.lists(st.integers(1, 6), max_size=4)
        ),
        max_size=30,
    )
)
@example([(0.0, 0, [2, 2, 2, 2]), (0.0, 5, [1, 1, 1]), (4.0, 0, []), (0.0, 5, [1])])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=large(40, 100))
def test_stress_or_not_every_span_is_kept_or_booked_once(
    measured: Make, span: Make, steps: list[tuple[float, int, list[int]]]
) -> None:
    made, at, sent = measured(minimum_duration="1s", sampling_percentage=50), 0.0, 0
    for pause, lag, traces in steps:
        at += pause
        made.lag = lag * SECOND
        spans = []
        for trace in traces:
            sent += 1
            spans.append(span(trace << 53, sent, status=ERROR if sent % 7 == 0 else None))
        made.send(at, *spans)
        told = {int.from_bytes(one.trace_id, "big") for one in made.verdicts if one.decision == "sampled"}
        assert {trace for trace, _ in made.kept} == told
    made.stop(at + 100)
    assert len(made.kept) == len(set(made.kept))
    assert len(made.kept) + made.context.ledger.sampled_out == sent
    assert made.under_test.held() == 0
