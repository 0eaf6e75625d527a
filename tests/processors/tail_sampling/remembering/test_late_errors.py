"""`rescue_late_errors`: a failure that comes late keeps what is still to come of its trace, and says so."""

from collections.abc import Callable
from typing import Any

import pytest

from podtrail.otlp import Status

Make = Callable[..., Any]
ERROR = Status(2, "")
CACHES = {"sampled_cache_size": 9, "non_sampled_cache_size": 9}


@pytest.fixture(
    params=[
        {},
        {"decision_cache": CACHES},
        {"decision_cache": {"non_sampled_cache_size": 9}},
        {"decision_memory": {"kept": 9, "not_kept": 9}},
        {"decision_memory": {"not_kept": 9}},
        {"num_shards": 3},
    ],
    ids=["in memory", "caches", "one cache", "compact", "not kept alone", "shards"],
)
def rescuing(request: Any, sampler: Make, policy: Make) -> Make:
    def make(*policies: object, **about: object) -> Any:
        policies = policies or (policy("status_code", status_codes=["ERROR"]),)
        return sampler(*policies, **{"rescue_late_errors": True} | request.param | about)

    return make


def test_a_late_error_is_kept_and_so_is_what_comes_after_it(rescuing: Make, span: Make) -> None:
    made = rescuing()
    made.send(0, span(1, 1))
    made.send(3, span(1, 2))
    made.send(4, span(1, 3, name="bind", status=ERROR))
    made.send(5, span(1, 4))
    made.stop(9)
    assert made.kept == [(1, 3), (1, 4)]
    assert made.context.ledger.sampled_out == 2
    assert [(v.decision, v.policy, v.reason) for v in made.verdicts] == [
        ("not_sampled", "", "no policy said yes"),
        ("sampled", "rescue_late_errors", 'late error: span "bind" has status ERROR'),
    ]
    assert made.counted("traces_rescued_late") == {"": 1}


def test_a_late_root_of_a_failed_attempt_rescues_its_trace(rescuing: Make, span: Make) -> None:
    made = rescuing()
    made.send(0, span(1, 1, parent=2))
    made.send(3, span(1, 2, name="SchedulePod", attributes={"scheduler.result": "Unschedulable"}))
    made.send(3, span(2, 1, parent=2))
    made.send(6, span(2, 2, name="SchedulePod", attributes={"scheduler.result": "Success"}))
    assert made.kept == [(1, 2)]
    assert made.verdicts[1].reason == 'late error: scheduler.result is "Unschedulable"'


def test_what_a_drop_policy_dropped_is_not_rescued(rescuing: Make, span: Make, policy: Make) -> None:
    drop = {"name": "d", "type": "drop", "drop": {"drop_sub_policy": [policy("always_sample")]}}
    made = rescuing(drop)
    made.send(0, span(1, 1))
    made.send(3, span(1, 2, status=ERROR))
    made.stop(9)
    assert not made.kept
    assert made.decisions == {1: "dropped"}
    assert len(made.verdicts) == 1


def test_a_rescued_trace_is_still_one_after_a_reload(rescuing: Make, span: Make) -> None:
    before, after = rescuing(), rescuing()
    before.send(0, span(1, 1))
    before.send(3, span(1, 2, status=ERROR))
    after.under_test.take_over(before.under_test, before.verdicts[-1].decided_at)
    after.send(4, span(1, 3))
    after.stop(9)
    assert after.kept == [(1, 3)]
    assert not after.verdicts


def test_without_it_a_late_error_follows_the_decision(rescuing: Make, span: Make) -> None:
    made = rescuing(rescue_late_errors=False)
    made.send(0, span(1, 1))
    made.send(3, span(1, 2, status=ERROR))
    made.stop(9)
    assert not made.kept
    assert [verdict.decision for verdict in made.verdicts] == ["not_sampled"]


def test_what_was_decided_under_stress_is_rescued_as_well(sampler: Make, span: Make, policy: Make) -> None:
    relief = {"mode": "always", "sampling_percentage": 0, "errors_per_second": 0}
    made = sampler(policy("always_sample"), rescue_late_errors=True, stress_relief=relief)
    made.send(0, span(1, 1))
    made.send(1, span(1, 2, status=ERROR))
    made.send(2, span(1, 3))
    made.stop(9)
    assert made.kept == [(1, 2), (1, 3)]
    assert [verdict.decision for verdict in made.verdicts] == ["not_sampled", "sampled"]
