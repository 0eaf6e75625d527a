"""Bounds in bytes: traces are decided early instead of being lost, the biggest offender alone where there is one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.holding.held_trace import CHUNK_WEIGHT, TRACE_WEIGHT

from podtrail.component import Context
from podtrail.otlp import Batch, Group, Status

Make = Callable[..., Any]
KIB, MIB = 2**10, 2**20
START = 1_790_000_000 * 10**9
ERROR = Status(2, "")


@pytest.fixture
def errors(policy: Make) -> object:
    return policy("status_code", status_codes=["ERROR"])


@pytest.fixture
def many(policy: Make) -> object:
    return policy("span_count", min_spans=9)


def _padded(kib: int) -> dict[str, str]:
    return {"pad": "x" * (kib * KIB)}


def test_a_giant_trace_is_decided_alone_and_its_rest_follows(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, maximum_held_trace_kib=64)
    made.send(0, span(1, 1, attributes=_padded(30)), span(2, 1, attributes=_padded(30)))
    made.send(0.1, span(1, 2, attributes=_padded(40), status=ERROR))
    assert made.decisions == {1: "sampled"}
    made.send(0.2, span(1, 3), span(2, 2))
    assert made.kept == [(1, 1), (1, 2), (1, 3)]
    assert made.counted("traces_decided_large") == {"": 1}
    made.stop(5)
    assert made.decisions == {1: "sampled", 2: "not_sampled"}


def test_a_giant_that_nothing_matches_leaves_at_once_with_span_ingest(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, maximum_held_trace_kib=64, sampling_strategy="span-ingest")
    made.send(0, span(1, 1, attributes=_padded(30)), span(1, 2, attributes=_padded(40)), span(2, 1))
    made.send(0.1, span(1, 3, status=ERROR))
    assert made.decisions == {1: "not_sampled"}
    assert made.under_test.held() == 1


def test_one_that_takes_over_half_of_the_room_goes_first(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, maximum_held_mib=1)
    made.send(0, span(1, 1), span(2, 1))
    for step in range(1, 30):
        made.send(step / 100, span(3, step, attributes=_padded(40)))
    assert made.decisions == {3: "not_sampled"}
    assert made.under_test.held() == 2


def _weighing(number: int, weight: int) -> Group:
    """A group of which a trace alone weighs so many bytes."""
    return Group(b"", b"", number.to_bytes(16, "big"), bytes(weight - TRACE_WEIGHT - CHUNK_WEIGHT), 1)


def _hold(made: Any, at: int, *groups: Group) -> None:
    """Hand groups over at a second, after all that is due."""
    made.pass_time(at)
    now = START + at * 10**9
    made.out += made.under_test.add(Batch(groups, now), now).out


@pytest.mark.parametrize(("weight", "first"), [(MIB // 2, 1), (MIB // 2 + 1, 2)], ids=["just half", "over half"])
def test_half_of_the_room_is_what_one_trace_may_take(sampler: Make, many: Any, weight: int, first: int) -> None:
    made = sampler(many, maximum_held_mib=1)
    _hold(made, 0, _weighing(1, 500), _weighing(2, weight), _weighing(3, MIB // 2 - 400))
    assert made.decisions == {first: "not_sampled"}
    assert made.counted("traces_decided_early") == {"": 1}


def test_a_giant_that_was_decided_in_time_leaves_the_oldest_to_go(sampler: Make, many: Any) -> None:
    made = sampler(many, maximum_held_mib=1)
    _hold(made, 0, _weighing(1, 600 * KIB))
    _hold(made, 3, *(_weighing(number, 400 * KIB) for number in (11, 12, 13)))
    assert list(made.decisions) == [1, 11]


def test_what_fits_exactly_is_held(sampler: Make, many: Any) -> None:
    made = sampler(many, maximum_held_mib=1)
    _hold(made, 0, *(_weighing(number, 256 * KIB) for number in (1, 2, 3, 4)))
    assert not made.decisions
    assert made.under_test.memory.bytes == MIB


@pytest.mark.parametrize(("more", "decided"), [(0, []), (1, [1])], ids=["the bound", "a byte more"])
def test_a_trace_may_weigh_what_the_bound_says(sampler: Make, many: Any, more: int, decided: list[int]) -> None:
    made = sampler(many, maximum_held_trace_kib=64)
    _hold(made, 0, _weighing(1, 64 * KIB + more))
    assert list(made.decisions) == decided


def test_headers_count_once_and_only_while_they_are_held(sampler: Make, span: Make, errors: Any) -> None:
    made = sampler(errors, maximum_held_mib=1)
    big = {"pad": "x" * (400 * KIB)}
    made.send(0, *(span(number, resource=big) for number in range(1, 50)))
    assert not made.decisions
    made.send(0.1, *(span(number, resource=big | {"other": number}) for number in (60, 61)))
    assert made.decisions
    made.pass_time(5)
    assert made.under_test.held() == 0
    assert made.under_test.memory.bytes == 0


_sizes = st.integers(0, 200_000) | st.sampled_from([0, 524_000, 1_100_000])
_steps = st.lists(
    st.tuples(st.integers(1, 6), _sizes, st.integers(0, 3), st.sampled_from([0, 0, 0, 3]), st.booleans()), max_size=30
)


@given(_steps, st.sampled_from([0, 100, 600]), st.sampled_from(["trace-complete", "span-ingest"]))
@settings(deadline=None, max_examples=50)
def test_neither_bound_is_ever_exceeded_and_nothing_is_lost(
    steps: list[tuple[int, int, int, int, bool]], most_kib: int, strategy: str
) -> None:
    context = Context(id="tail_sampling")
    about = {
        "policies": [{"name": "all", "type": "span_count", "span_count": {"min_spans": 3}}],
        "maximum_held_mib": 1,
        "maximum_held_trace_kib": most_kib,
        "decision_wait": "2s",
        "sampling_strategy": strategy,
    }
    made = FACTORY.create(FACTORY.Config.model_validate(about), context)
    now, out = 10**18, 0
    for sent, (number, size, header, seconds, reload) in enumerate(steps, 1):
        now += seconds * 10**9
        while (due := made.deadline()) is not None and due <= now:
            out += sum(batch.span_count for batch in made.expire(due, 100))
        if reload:
            successor = FACTORY.create(FACTORY.Config.model_validate(about), context)
            successor.take_over(made, now)
            made = successor
        group = Group(b"r" * header * 100_000, b"s", number.to_bytes(16, "big"), bytes(size), 1)
        out += sum(batch.span_count for batch in made.add(Batch([group], now), now).out)
        held = [trace for trace in made.memory.traces.values() if trace.state is None]
        assert made.memory.bytes <= MIB
        assert sum(len(chunk) for trace in held for chunk in trace.chunks) <= made.memory.bytes
        assert all(trace.weight <= most_kib * KIB for trace in held if most_kib)
        assert sent == out + made.held() + context.ledger.sampled_out
    assert not context.ledger.dropped
