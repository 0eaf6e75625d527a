"""Whatever comes in whatever order: nothing is lost, deadlines hold, decisions do not contradict each other."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any

from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context
from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.otlp import Batch, Decision, Group, Status, encode_span, frame, resource_header, scope_header
from podtrail.testing.contracts import Arrival, check_processor, check_take_over_keeps_what_is_held
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
IDS = [number.to_bytes(8, "big") for number in range(1, 7)]
RESOURCES = [resource_header({"service.name": name}) for name in ("one", "two")]
SCOPE = scope_header("any")


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Return a group of one of few traces, so that spans meet; spans may well repeat."""
    trace_id = draw(st.sampled_from(IDS)) * 2
    raw = [
        encode_span(
            trace_id=trace_id,
            span_id=draw(st.sampled_from(IDS)),
            parent_span_id=draw(st.sampled_from([b"", *IDS[:2]])),
            name="x" * draw(st.sampled_from([1, 400])),
            start=START,
            end=START + draw(st.integers(0, 3)) * SECOND,
            status=Status(draw(st.sampled_from([0, 2])), ""),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return Group(draw(st.sampled_from(RESOURCES)), SCOPE, trace_id, frame(raw), len(raw))


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    """Return batches in order of time."""
    times = sorted(draw(st.lists(st.integers(0, 80), max_size=10)))
    batches = [Batch(draw(st.lists(groups(), min_size=1, max_size=4)), START + time * SECOND // 4) for time in times]
    return [Arrival(batch.arrived, batch) for batch in batches]


def _policy(type: str, **settings: object) -> dict[str, object]:
    return {"name": type, "type": type, type: settings}


policies = st.lists(
    st.sampled_from(
        [
            _policy("status_code", status_codes=["ERROR"]),
            _policy("latency", threshold_ms=1000),
            _policy("probabilistic", sampling_percentage=40),
            _policy("drop", drop_sub_policy=[_policy("span_count", min_spans=4)]),
        ]
    ),
    unique_by=lambda policy: str(policy["name"]),
)
settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "policies": policies,
        "decision_wait": st.sampled_from(["1s", "3s", "10s"]),
        "decision_wait_after_root_received": st.sampled_from(["0s", "500ms", "2s"]),
        "num_traces": st.sampled_from([1, 2, 50]),
        "block_on_overflow": st.booleans(),
        "decision_cache": st.fixed_dictionaries(
            {"sampled_cache_size": st.sampled_from([0, 1, 50]), "non_sampled_cache_size": st.sampled_from([0, 1, 50])}
        ),
        "maximum_trace_size_bytes": st.sampled_from([0, 900]),
        "sample_on_first_match": st.booleans(),
        "num_shards": st.sampled_from([1, 3]),
        "sampling_strategy": st.sampled_from(["trace-complete", "span-ingest"]),
        "drop_pending_traces_on_shutdown": st.booleans(),
    }
)


def _create(about: Mapping[str, object]) -> Callable[[Context], Any]:
    config = FACTORY.Config.model_validate(about)
    return lambda context: FACTORY.create(config, context)


@limits(max_examples=large(25, 100))
@given(arrivals(), settings)
def test_keeps_the_contract_of_processors(arriving: list[Arrival], about: dict[str, Any]) -> None:
    check_processor(_create(about), arriving)


@limits(max_examples=large(20, 100))
@given(arrivals(), settings)
def test_keeps_the_contract_where_traces_are_weighed_against_each_other(
    arriving: list[Arrival], about: dict[str, Any]
) -> None:
    budget = _policy("rate_limiting", spans_per_second=1, burst_capacity=4)
    policies = [*about["policies"], budget]
    create = _create(about | {"policies": policies, "sampling_strategy": "trace-complete"})
    check_processor(lambda context: create(replace(context, gates=frozenset({USE_TRACE_STATE}))), arriving)


@limits(max_examples=large(20, 100))
@given(arrivals(), settings, st.permutations([1, 2, 5]))
def test_a_reload_may_change_the_number_of_shards(
    arriving: list[Arrival], about: dict[str, Any], shards: list[int]
) -> None:
    # Without roots that bring decisions nearer: evicted traces are counted in the order of their eviction.
    plain = about | {"decision_wait_after_root_received": "0s"}
    creators = cycle([_create(plain | {"num_shards": number}) for number in shards[:2]])
    check_take_over_keeps_what_is_held(lambda context: next(creators)(context), arriving)


@limits(max_examples=large(40, 100))
@given(arrivals(), settings)
def test_a_remembered_trace_gets_one_decision(arriving: list[Arrival], about: dict[str, Any]) -> None:
    room = {"num_traces": 50, "decision_cache": {"sampled_cache_size": 50, "non_sampled_cache_size": 50}}
    sampler = _create(about | room)(Context(id="tail_sampling"))
    decisions: dict[bytes, set[Decision]] = defaultdict(set)
    out: list[Batch] = []
    for now, batch in arriving:
        while (due := sampler.deadline()) is not None and due <= now:
            out += sampler.expire(due, 3)
        out += sampler.add(batch, now).out
    out += sampler.drain(START + 100 * SECOND)
    for batch in out:
        for verdict in batch.verdicts:
            assert verdict.trace_id not in decisions, "decided twice"
            decisions[verdict.trace_id].add(verdict.decision)
        for group in batch.groups:
            assert decisions[group.trace_id] == {"sampled"}
    assert decisions.keys() == {group.trace_id for _, batch in arriving for group in batch.groups}


@limits(max_examples=large(30, 100))
@given(arrivals(), settings, st.lists(st.integers(0, 8), min_size=10, max_size=10))
def test_nothing_that_is_held_arrived_before_it_says(
    arriving: list[Arrival], about: dict[str, Any], lags: list[int]
) -> None:
    room = {"num_traces": 50, "maximum_trace_size_bytes": 0}
    caches = {"decision_cache": {"sampled_cache_size": 50, "non_sampled_cache_size": 50}}
    sampler = _create(about | room | caches)(Context(id="tail_sampling"))
    arrived: dict[bytes, int] = {}
    decided: set[bytes] = set()
    for (now, batch), lag in zip(arriving, lags, strict=False):
        while (due := sampler.deadline()) is not None and due <= now:
            decided |= {verdict.trace_id for out in sampler.expire(due, 9) for verdict in out.verdicts}
        came = now - lag * SECOND
        out = sampler.add(replace(batch, arrived=came), now).out
        decided |= {verdict.trace_id for one in out for verdict in one.verdicts}
        for group in batch.groups:
            arrived[group.trace_id] = min(came, arrived.get(group.trace_id, came))
        held = [at for trace, at in arrived.items() if trace not in decided]
        since = sampler.held_since()
        assert (since is None) == (not held)
        assert since is None or since <= min(held)


def test_a_straggler_counts_only_as_long_as_it_may_be_held(
    sampler: Callable[..., Any], span: Callable[..., Any]
) -> None:
    made = sampler()
    for second, came, since in ((0, 0, 0), (10, 4, 4), (11, 11, 4), (12, 12, 11), (14, 14, 14)):
        made.pass_time(second)
        made.under_test.add(Batch([span(second).group()], START + came * SECOND), START + second * SECOND)
        assert made.under_test.held_since() == START + since * SECOND
