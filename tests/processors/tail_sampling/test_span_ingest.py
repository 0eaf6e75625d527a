"""`span-ingest`: a trace leaves as soon as a part of it matches."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from podtrail.otlp import Batch, Status, scope_attributes

ERROR = Status(2, "")
START = 1_790_000_000_000_000_000

Make = Callable[..., Any]


@pytest.fixture(name="ingesting")
def _ingesting(sampler: Make) -> Make:
    """Return what makes a sampler with this strategy."""
    return partial(sampler, sampling_strategy="span-ingest")


@pytest.fixture(name="errors")
def _errors(policy: Make) -> Any:
    return policy("status_code", "errors", status_codes=["ERROR"])


def test_a_trace_leaves_with_all_of_it_when_a_part_matches(ingesting: Make, span: Make, errors: Any) -> None:
    made = ingesting(errors)
    made.send(0, span(1, 1), span(2, 1))
    assert not made.kept
    made.send(0.5, span(1, 2, status=ERROR))
    assert made.kept == [(1, 1), (1, 2)]
    made.send(1, span(1, 3))
    assert made.kept == [(1, 1), (1, 2), (1, 3)]
    made.stop(9)
    assert made.decisions == {1: "sampled", 2: "not_sampled"}


def test_only_the_part_that_matched_is_marked(ingesting: Make, span: Make, errors: Any) -> None:
    made = ingesting(errors, gates=["processor.tailsamplingprocessor.recordpolicy"])
    made.send(0, span(1, 1))
    made.send(0.5, span(1, 2, status=ERROR))
    marks = [scope_attributes(group.scope) for batch in made.out for group in batch.groups]
    assert marks == [{}, {"tailsampling.policy": "errors"}]


def test_latency_sees_a_part_and_span_count_the_trace_so_far(ingesting: Make, span: Make, policy: Make) -> None:
    made = ingesting(policy("latency", threshold_ms=15), policy("span_count", "three", min_spans=3))
    made.send(0, span(1, 1, start=1, end=10_000_000))
    made.send(0.1, span(1, 2, start=1, end=20_000_000_000))
    made.send(0.2, span(2, 1, start=1, end=10_000_000), span(2, 2, start=10_000_000, end=20_000_000))
    for at in (0.3, 0.4, 0.5):
        made.send(at, span(3, 1))
    made.stop(9)
    assert {verdict.trace_id[-1]: verdict.policy for verdict in made.verdicts} == {1: "latency", 2: "", 3: "three"}


def test_spans_without_a_status_are_looked_for_in_the_part_alone(ingesting: Make, span: Make, policy: Make) -> None:
    made = ingesting(policy("status_code", status_codes=["UNSET"]), policy("latency", threshold_ms=100))
    made.send(0, span(1, 1, status=ERROR))
    made.send(0.1, span(1, 2, status=ERROR))
    made.stop(9)
    assert made.decisions == {1: "not_sampled"}


def test_a_drop_policy_that_does_not_match_holds_every_yes_back(ingesting: Make, span: Make, policy: Make) -> None:
    drop = policy("drop", drop_sub_policy=[policy("span_count", min_spans=3)])
    made = ingesting(policy("always_sample"), policy("always_sample", "again"), drop)
    for at in (0, 0.1, 0.2):
        made.send(at, span(1, 1))
    made.send(0.3, span(2, 1))
    made.stop(9)
    assert made.decisions == {1: "dropped", 2: "not_sampled"}
    assert made.counted("count_traces_sampled") == {
        "decision=dropped,policy=drop,sampled=false": 1,
        "decision=not_sampled,policy=drop,sampled=false": 3,
    }


def test_what_never_matched_starts_anew_unless_it_is_remembered(ingesting: Make, span: Make, errors: Any) -> None:
    for size, kept in ((0, [(1, 2)]), (5, [])):
        made = ingesting(errors, decision_cache={"non_sampled_cache_size": size})
        made.send(0, span(1, 1))
        made.send(5, span(1, 2, status=ERROR))
        made.stop(9)
        assert made.kept == kept


@pytest.mark.parametrize("cache", [0, 5])
def test_a_decided_trace_that_is_gone_at_its_deadline_is_counted_there(
    ingesting: Make, span: Make, errors: Any, cache: int
) -> None:
    made = ingesting(errors, num_traces=1, decision_cache={"sampled_cache_size": cache})
    made.send(0, span(1, status=ERROR))
    made.send(0.5, span(2))
    assert not any(made.counted("sampling_trace_dropped_too_early").values())
    made.stop(9)
    assert made.counted("sampling_trace_dropped_too_early") == {"": 1}


def test_blocking_takes_no_more_traces_than_there_is_room_for(ingesting: Make, span: Make, errors: Any) -> None:
    made = ingesting(errors, num_traces=1, block_on_overflow=True)
    made.send(0, span(1, 1))
    taken = made.under_test.add(Batch([span(1, 2).group(), span(2, 1).group()], START), START)
    assert [int.from_bytes(group.trace_id, "big") for group in taken.rest.groups] == [2]


@pytest.mark.parametrize(
    ("type", "block"),
    [
        ("latency", {"threshold_ms": 1, "upper_threshold_ms": 2}),
        ("span_count", {"max_spans": 2}),
        ("rate_limiting", {}),
        ("bytes_limiting", {}),
    ],
)
def test_policies_that_need_more_than_a_part_are_refused(
    ingesting: Make, policy: Make, type: str, block: dict[str, int]
) -> None:
    inner = policy(type, "inner", **block)
    for outer in (
        policy(type, "outer", **block),
        policy("and", "outer", and_sub_policy=[inner]),
        policy("not", "outer", not_sub_policy=inner),
        policy("drop", "outer", drop_sub_policy=[inner]),
        policy("composite", "outer", composite_sub_policy=[inner]),
    ):
        with pytest.raises(ValueError, match='policy "outer" is stateful'):
            ingesting(outer)
