"""With the gate `usetracestate` a budget goes to the traces of highest randomness of all that fall due in a second."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context
from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.otlp import Batch, Group, SpanView, encode_span, frame, resource_header, scope_header, split
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
GATES = frozenset({USE_TRACE_STATE})

Make = Callable[..., Any]


def of(number: int, randomness: int, spans: int = 1) -> list[Group]:
    """Return a trace with this randomness, in groups of a span."""
    trace_id = number.to_bytes(9, "big") + randomness.to_bytes(7, "big")
    raw = [encode_span(trace_id=trace_id, span_id=bytes([at + 1]) * 8, name="s", start=1, end=2) for at in range(spans)]
    return [Group(resource_header({}), scope_header("s"), trace_id, frame([one]), 1) for one in raw]


def budget(burst: int, per_second: int = 0) -> dict[str, Any]:
    about = {"spans_per_second": per_second, "burst_capacity": burst}
    return {"name": "budget", "type": "rate_limiting", "rate_limiting": about}


def made(*policies: dict[str, Any], context: Context | None = None, **settings: object) -> Any:
    config = FACTORY.Config.model_validate({"policies": policies, "decision_wait": "1s", **settings})
    return FACTORY.create(config, context or Context(id="tail_sampling", pipeline="traces", gates=GATES))


def kept(out: Sequence[Batch]) -> list[tuple[int, str]]:
    """Return the randomness and the trace state of every trace that was kept, the highest first."""
    spans = [SpanView(raw) for batch in out for group in batch.groups for raw in split(group.spans)]
    return sorted({(int.from_bytes(span.trace_id[9:], "big"), span.trace_state) for span in spans}, reverse=True)


def served(sampler: Any, limit: int = 1 << 62) -> list[Batch]:
    """Do all that falls due, in slices."""
    out: list[Batch] = []
    while (due := sampler.deadline()) is not None:
        out += sampler.expire(due, limit)
    return out


def test_traces_wait_for_the_end_of_their_second_and_no_longer() -> None:
    sampler = made(budget(10))
    sampler.add(Batch(of(1, 5), START), START + SECOND // 4)
    assert sampler.deadline() == START + 2 * SECOND
    sampler.add(Batch(of(2, 5), START), START)
    assert sampler.deadline() == START + SECOND


@pytest.mark.parametrize(
    "policies",
    [
        [{"name": "all", "type": "always_sample"}],
        [{"name": "c", "type": "composite", "composite": {"composite_sub_policy": [budget(1)], "policy_order": []}}],
        [{"name": "n", "type": "not", "not": {"not_sub_policy": budget(1)}}],
        [{"name": "d", "type": "drop", "drop": {"drop_sub_policy": [budget(1)]}}],
    ],
    ids=["none", "composite", "not", "drop"],
)
def test_without_a_budget_to_be_weighed_nothing_waits_for_a_tick(policies: list[dict[str, Any]]) -> None:
    sampler = made(*policies)
    sampler.add(Batch(of(1, 5), START), START + SECOND // 4)
    assert sampler.deadline() == START + SECOND + SECOND // 4


traces = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=12)


@limits(max_examples=large(40, 100))
@given(traces, st.integers(1, 12))
def test_who_is_refused_has_no_higher_randomness_than_who_is_kept(of_: list[tuple[int, int]], burst: int) -> None:
    sampler = made(budget(burst))
    for number, (randomness, spans) in enumerate(of_):
        sampler.add(Batch(of(number, randomness, spans), START), START + 1 + number)
    out = served(sampler)
    states = {state for _, state in kept(out)}
    lowest = min((randomness for randomness, _ in kept(out)), default=10)
    fitting = [one for one in of_ if one[1] <= burst]
    left = {group.trace_id for batch in out for group in batch.groups}
    assert len(left) == sum(randomness >= lowest for randomness, _ in fitting)
    assert sum(spans for randomness, spans in fitting if randomness >= lowest) <= burst
    below = {randomness for randomness, _ in fitting if randomness < lowest}
    if left:
        assert states == {f"ot=th:{f'{max(below) + 1:014x}'.rstrip('0')}" if below else "ot=th:0"}
    if below:
        assert sum(spans for randomness, spans in fitting if randomness >= max(below)) > burst


@limits(max_examples=large(40, 100))
@given(traces, st.integers(1, 12), st.integers(1, 40), st.integers(1, 12))
def test_slices_and_a_shutdown_between_them_change_nothing(
    of_: list[tuple[int, int]], burst: int, limit: int, slices: int
) -> None:
    answers = []
    for how in ("at once", "in slices", "shut down in between"):
        sampler = made(budget(burst), {**budget(2 * burst), "name": "more"})
        for number, (randomness, spans) in enumerate(of_):
            sampler.add(Batch(of(number, randomness, spans), START), START + 1 + number)
        if how == "shut down in between":
            now = sampler.deadline()
            out = [batch for _ in range(slices) for batch in sampler.expire(now, limit)]
            answers.append(kept([*out, *sampler.drain(now)]))
        else:
            answers.append(kept(served(sampler, limit if how == "in slices" else 1 << 62)))
    assert answers[0] == answers[1] == answers[2]


def test_what_is_decided_before_its_time_is_charged_by_itself() -> None:
    sampler = made(budget(3), maximum_held_trace_kib=1)
    *first, last = of(1, 1, 3)
    wide = encode_span(trace_id=last.trace_id, span_id=b"w" * 8, name="w" * 2000, start=1, end=2)
    out = sampler.add(Batch([*first, last._replace(spans=frame([wide]))], START), START).out
    assert kept(out) == [(1, "ot=th:0")]
    sampler.add(Batch(of(2, 9), START), START)
    assert kept(served(sampler)) == []


def test_a_budget_goes_on_over_a_reload() -> None:
    first, second = made(budget(3)), made(budget(3))
    first.add(Batch(of(1, 5, 2), START), START)
    assert [randomness for randomness, _ in kept(served(first))] == [5]
    second.take_over(first, START + SECOND)
    second.add(Batch([*of(2, 7), *of(3, 8)], START), START + SECOND)
    assert [randomness for randomness, _ in kept(served(second))] == [8]


def test_policies_that_are_only_tried_weigh_the_same_traces() -> None:
    everything = {"name": "all", "type": "always_sample"}
    sampler = made(everything, {**budget(2), "shadow": True}, shadow_policies=[budget(2)])
    for number in range(4):
        sampler.add(Batch(of(number, number + 1), START), START)
    verdicts = [verdict for batch in served(sampler) for verdict in batch.verdicts]
    tried = {verdict.trace_id[-1]: [vote.decision for vote in verdict.explained()] for verdict in verdicts}
    no, yes = (["sampled", vote, vote] for vote in ("not_sampled", "sampled"))
    assert tried == {1: no, 2: no, 3: yes, 4: yes}


def test_late_spans_are_told_nothing_as_the_collector_does() -> None:
    sampler = made(budget(1))
    sampler.add(Batch([*of(1, 5), *of(2, 4)], START), START)
    assert kept(served(sampler)) == [(5, "ot=th:00000000000005")]
    assert kept(sampler.add(Batch(of(1, 5), START), START + 9 * SECOND).out) == [(5, "")]
