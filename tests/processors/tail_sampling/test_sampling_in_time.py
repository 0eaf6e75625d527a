"""When traces are decided, and what becomes of spans that come late, too many or never."""

from collections.abc import Callable
from typing import Any

import pytest

from podtrail.otlp import Batch, Status, scope_attributes

ERROR = Status(2, "")
START, SECOND = 1_790_000_000_000_000_000, 1_000_000_000
GATE = "processor.tailsamplingprocessor.recordpolicy"

Make = Callable[..., Any]


@pytest.fixture(name="errors")
def _errors(policy: Make) -> Any:
    return policy("status_code", "errors", status_codes=["ERROR"])


@pytest.mark.parametrize(("wait", "seconds"), [("2s", 2), ("2900ms", 2), ("100ms", 1), (0, 1), (3_000_000_000, 3)])
def test_a_trace_is_decided_whole_seconds_after_its_first_span(
    sampler: Make, span: Make, errors: Any, wait: object, seconds: int
) -> None:
    made = sampler(errors, decision_wait=wait)
    made.send(0.5, span(1, 1))
    made.send(0.9, span(1, 2, status=ERROR))
    assert made.under_test.deadline() == START + round((seconds + 0.5) * SECOND)
    made.pass_time(seconds + 0.4)
    assert not made.verdicts
    made.pass_time(seconds + 0.5)
    assert made.kept == [(1, 1), (1, 2)]


def test_a_root_brings_the_decision_nearer_but_never_puts_it_off(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, decision_wait="10s", decision_wait_after_root_received="1s")
    made.send(0, span(1, 1, parent=9), span(2, 1, parent=9))
    made.send(1, span(1, 2))
    made.send(9.5, span(2, 2))
    made.pass_time(2)
    assert made.decisions == {1: "not_sampled"}
    made.pass_time(10)
    assert made.decisions == {1: "not_sampled", 2: "not_sampled"}


def test_late_spans_follow_the_decision_of_a_trace_in_memory(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, gates=[GATE])
    made.send(0, span(1, 1, status=ERROR), span(2, 1))
    made.send(5, span(1, 2), span(2, 2, status=ERROR))
    assert made.kept == [(1, 1), (1, 2)]
    assert [scope_attributes(group.scope) for batch in made.out for group in batch.groups] == [
        {"tailsampling.policy": "errors"},
        {},
    ]
    assert made.context.ledger.sampled_out == 2


def test_late_spans_follow_a_remembered_decision(sampler: Make, span: Make, errors: Any) -> None:
    caches = {"sampled_cache_size": 1, "non_sampled_cache_size": 1}
    made = sampler(errors, decision_cache=caches, gates=["recordpolicy"])
    made.send(0, span(1, 1, status=ERROR), span(2, 1))
    made.send(5, span(1, 2), span(2, 2, status=ERROR))
    assert made.kept == [(1, 1), (1, 2)]
    last = made.out[-1].groups[0]
    assert scope_attributes(last.scope) == {"tailsampling.policy": "errors", "tailsampling.cached_decision": True}
    assert made.counted("early_releases_from_cache_decision") == {"sampled=true": 1, "sampled=false": 1}
    assert made.under_test.deadline() is None


def test_a_forgotten_trace_is_judged_anew(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, decision_cache={"non_sampled_cache_size": 1})
    made.send(0, span(1, 1))
    made.send(0.1, span(2, 1))
    made.send(5, span(1, 2, status=ERROR), span(2, 2, status=ERROR))
    made.stop(9)
    assert made.kept == [(1, 2)]


def test_one_trace_too_many_costs_the_oldest(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), num_traces=2)
    made.send(0, span(1, 1), span(2, 1))
    made.send(1, span(1, 2), span(3, 1))
    (verdict,) = made.verdicts
    assert (verdict.decision, verdict.reason, verdict.spans) == ("dropped", "evicted undecided: num_traces", 2)
    assert made.context.ledger.dropped == {"evicted_undecided": 2}
    made.stop(9)
    assert made.kept == [(2, 1), (3, 1)]
    assert made.counted("sampling_trace_dropped_too_early") == {"": 1}


def test_a_decided_trace_gives_its_place_up_without_loss(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), num_traces=1)
    for second in (0, 5, 10):
        made.send(second, span(second, 1))
    made.stop(20)
    assert made.kept == [(0, 1), (5, 1), (10, 1)] or made.kept[1:] == [(5, 1), (10, 1)]
    assert not made.context.ledger.dropped


def test_blocking_takes_no_more_than_there_is_room_for_and_loses_nothing(
    sampler: Make, span: Make, policy: Make
) -> None:
    made = sampler(
        policy("always_sample"), num_traces=2, block_on_overflow=True, decision_cache={"sampled_cache_size": 9}
    )
    batch = Batch([span(number).group() for number in (1, 2, 3, 1, 4)], START)
    rest = made.under_test.add(batch, START).rest
    assert [int.from_bytes(group.trace_id, "big") for group in rest.groups] == [3, 1, 4]
    made.pass_time(2)
    taken = made.under_test.add(rest, START + 2 * SECOND)
    assert taken.rest is None
    assert [int.from_bytes(group.trace_id, "big") for batch in taken.out for group in batch.groups] == [1]
    made.stop(9)
    assert made.decisions == dict.fromkeys((1, 2, 3, 4), "sampled")
    assert not made.context.ledger.dropped


def test_at_the_bound_in_bytes_the_oldest_are_decided_not_lost(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, maximum_held_mib=1)
    big = {"pad": "x" * 300_000}
    for number in range(1, 6):
        made.send(0, span(number, status=ERROR if number == 1 else None, attributes=big))
    assert made.decisions == {1: "sampled", 2: "not_sampled"}
    assert made.kept == [(1, 1)]
    assert made.counted("traces_decided_early") == {"": 2}
    assert not made.context.ledger.dropped
    assert made.under_test.held() == 3


def test_a_trace_that_grows_too_large_is_not_kept(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), maximum_trace_size_bytes=300)
    made.send(0, span(1, 1), span(2, 1))
    made.send(1, span(1, 2, attributes={"pad": "x" * 300}))
    made.send(1.1, span(1, 3))
    made.stop(5)
    assert made.kept == [(2, 1)]
    assert made.verdicts[0].reason == "it is larger than maximum_trace_size_bytes"
    assert made.context.ledger.sampled_out == 3


def test_shutdown_decides_on_what_is_there(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors)
    made.send(0, span(1, status=ERROR), span(2))
    made.stop(0)
    assert made.decisions == {1: "sampled", 2: "not_sampled"}
    assert made.under_test.held() == 0


def test_shutdown_may_lose_what_is_undecided_and_says_so(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, drop_pending_traces_on_shutdown=True)
    made.send(0, span(1, status=ERROR))
    made.stop(0)
    assert made.decisions == {1: "dropped"}
    assert made.context.ledger.dropped == {"undecided_at_shutdown": 1}


def test_a_reload_keeps_arrivals_and_deadlines_and_judges_anew(sampler: Make, span: Make, policy: Make) -> None:
    old = sampler(policy("status_code", status_codes=["ERROR"]), decision_wait="10s")
    old.send(0, span(1, 1))
    old.send(1, span(2, 1))
    new = sampler(policy("always_sample"), decision_wait="1s")
    new.under_test.take_over(old.under_test, START + 2 * SECOND)
    assert new.under_test.held_since() == START
    new.send(2, span(3, 1), span(1, 2))
    new.pass_time(3)
    assert new.decisions == {3: "sampled"}
    new.pass_time(10)
    assert new.decisions == {3: "sampled", 1: "sampled"}
    assert new.under_test.deadline() == START + 11 * SECOND
    assert old.under_test.held() == 0


def test_a_reload_keeps_remembered_decisions(sampler: Make, span: Make, policy: Make) -> None:
    caches = {"sampled_cache_size": 5, "non_sampled_cache_size": 5}
    old = sampler(policy("status_code", status_codes=["ERROR"]), decision_cache=caches)
    old.send(0, span(1, 1), span(2, 1, status=ERROR))
    old.pass_time(9)
    new = sampler(policy("not", not_sub_policy=policy("always_sample")), decision_cache=caches)
    new.under_test.take_over(old.under_test, START + 9 * SECOND)
    new.send(10, span(1, 2), span(2, 2))
    assert new.kept == [(2, 2)]


def test_a_long_queue_is_judged_in_slices(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors)
    made.send(0, *(span(number) for number in range(1, 101)))
    due = made.under_test.deadline()
    slices = []
    while out := made.under_test.expire(due, 45):
        slices.append(sum(len(batch.verdicts) for batch in out))
    assert sum(slices) == 100
    assert max(slices) == 5


def test_metrics_carry_the_name_of_the_component(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, id="tail_sampling/prod")
    made.send(0, span(1, status=ERROR), span(2))
    made.stop(5)
    assert made.counted("count_traces_sampled") == {
        "decision=sampled,policy=prod.errors,sampled=true": 1,
        "decision=not_sampled,policy=prod.errors,sampled=false": 1,
    }
    assert made.counted("sampling_policy_execution_count") == {"policy=prod.errors": 2}


def test_spans_keep_the_headers_they_came_with(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"))
    for number, service in enumerate(("one", "two", "one", "one"), 1):
        made.send(0, span(1, number, resource={"service.name": service}))
    made.stop(5)
    groups = [group for batch in made.out for group in batch.groups]
    assert [group.span_count for group in groups] == [1, 1, 2]
    assert [b"one" in group.resource for group in groups] == [True, False, True]
