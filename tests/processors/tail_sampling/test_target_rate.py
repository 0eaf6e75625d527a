"""`target_rate`: probabilities that keep to a rate, are recorded, and let counts be recovered."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.probability import ALWAYS, NEVER, probability_of, randomness_of, read_sampling_state
from podtrail_processors.tail_sampling.allotment import Demand, allot
from podtrail_processors.tail_sampling.throughput import OTHER, Throughput

from podtrail.otlp import SpanView, Status, split

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
BUDGET = 100.0

Make = Callable[..., Any]


class Seen(NamedTuple):
    """A trace that a budget was asked about."""

    second: int
    key: str
    probability: float
    kept: bool


def traffic(
    rate: Callable[[float], float], seconds: float, shares: dict[str, float], *, seed: int = 1
) -> Iterator[tuple[int, str, int]]:
    """Yield the arrival, key and randomness of traces that come by chance at a rate."""
    rng, now = random.Random(seed), 0.0
    while True:
        now += rng.expovariate(max(rate(now), 1.0))
        if now >= seconds:
            return
        yield START + int(now * SECOND), rng.choices(list(shares), list(shares.values()))[0], rng.getrandbits(56)


def run(throughput: Throughput, traces: Iterator[tuple[int, str, int]]) -> list[Seen]:
    """Ask a budget about traces of one span."""
    seen = []
    for now, key, randomness in traces:
        flow = throughput.admit(key, key, 1, 1.0, now)
        seen.append(Seen((now - START) // SECOND, key, flow.probability, flow.threshold <= randomness))
    return seen


def achieved(seen: list[Seen], first: int, last: int) -> float:
    """Return what was kept in these seconds as a share of the budget."""
    return sum(trace.kept for trace in seen if first <= trace.second < last) / (last - first) / BUDGET


@pytest.fixture(name="throughput")
def _throughput() -> Throughput:
    return Throughput(BUDGET, 10 * SECOND, most_keys=100)


ONE = {"all": 1.0}
ZIPF = {f"key {at}": 1 / at for at in range(1, 51)}


@pytest.mark.parametrize("shares", [ONE, ZIPF], ids=["one key", "50 keys"])
def test_a_steady_load_is_kept_at_the_target(throughput: Throughput, shares: dict[str, float]) -> None:
    seen = run(throughput, traffic(lambda _: 1000, 60, shares))
    assert achieved(seen, 0, 5) < 1.6
    assert achieved(seen, 5, 60) == pytest.approx(1, abs=0.1)


def test_less_than_the_target_is_kept_whole(throughput: Throughput) -> None:
    assert all(trace.kept for trace in run(throughput, traffic(lambda _: 50, 60, ONE)))


def test_a_start_at_a_hundred_times_the_target_is_no_burst(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda _: 10_000, 5, ONE))
    assert achieved(seen, 0, 1) < 2
    assert achieved(seen, 1, 5) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("at", [20, 24.5, 29.9])
def test_after_a_jump_of_ten_times_the_target_holds_again_within_seconds(throughput: Throughput, at: float) -> None:
    seen = run(throughput, traffic(lambda now: 200 if now < at else 2000, 60, ONE))
    assert achieved(seen, 20, 40) < 1.6
    assert achieved(seen, 33, 60) == pytest.approx(1, abs=0.1)


def test_after_a_fall_to_a_tenth_probabilities_rise_step_by_step(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda now: 2000 if now < 30 else 200, 90, ONE))
    assert achieved(seen, 30, 40) < achieved(seen, 40, 50) < achieved(seen, 50, 60)
    assert achieved(seen, 65, 90) == pytest.approx(1, abs=0.1)


def test_after_silence_the_first_burst_is_bounded(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda now: 0 if 30 < now < 90 else 2000, 120, ONE))
    assert achieved(seen, 90, 95) < 2.2
    assert achieved(seen, 95, 120) == pytest.approx(1, abs=0.1)


def test_rare_keys_are_kept_whole_and_frequent_ones_thinned(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda _: 1000, 120, {"Success": 0.97, "Unschedulable": 0.029, "Error": 0.001}))
    share = {
        key: sum(trace.kept for trace in seen if trace.key == key) / sum(trace.key == key for trace in seen)
        for key in ("Success", "Unschedulable", "Error")
    }
    assert share["Error"] == 1
    assert share["Unschedulable"] > 0.95
    assert 0.05 < share["Success"] < 0.1


@pytest.mark.parametrize("shape", [lambda _: 1000, lambda now: 200 if now < 30 else 2000, lambda now: 2000 - 30 * now])
def test_kept_traces_by_their_inverse_probability_add_up_to_all_there_were(
    throughput: Throughput, shape: Callable[[float], float]
) -> None:
    """Of each key the estimate is within 4.5 standard errors, by the variance that the probabilities themselves give."""
    shares = {"Success": 0.9, "Unschedulable": 0.09, "Error": 0.01}
    seen = run(throughput, traffic(shape, 60, shares))
    for key in shares:
        traces = [trace for trace in seen if trace.key == key]
        estimate = sum(1 / trace.probability for trace in traces if trace.kept)
        error = math.sqrt(sum(1 / trace.probability - 1 for trace in traces))
        assert abs(estimate - len(traces)) <= 4.5 * error, key


@given(
    st.lists(st.tuples(st.integers(0, 5 * SECOND), st.integers(0, 9), st.integers(1, 500)), max_size=300),
    st.floats(0.1, 1000),
)
@settings(max_examples=50)
def test_the_same_traces_at_the_same_times_get_the_same_thresholds(
    steps: list[tuple[int, int, int]], budget: float
) -> None:
    def thresholds() -> list[int]:
        throughput, now, found = Throughput(budget, SECOND, most_keys=5), START, []
        for pause, key, amount in steps:
            now += pause
            found.append(throughput.admit(key, str(key), amount, 1.0, now).threshold)
            assert len(throughput.flows) <= 6
        return found

    first = thresholds()
    assert first == thresholds()
    assert all(ALWAYS <= threshold < NEVER for threshold in first)


def test_keys_beyond_the_most_share_one_that_is_thinned_too() -> None:
    throughput = Throughput(BUDGET, 10 * SECOND, most_keys=10)
    kept = 0
    for number in range(20_000):
        flow = throughput.admit(number, str(number), 1, 1.0, START + number * SECOND // 1000)
        kept += flow.threshold <= randomness_of(random.Random(number).randbytes(16))
    assert len(throughput.flows) <= 11
    assert throughput.flows[OTHER].probability < 0.2
    assert kept / 20 / BUDGET < 1.5


def test_what_was_sampled_before_is_thinned_only_as_far_as_it_was_not() -> None:
    throughput, kept = Throughput(BUDGET, 10 * SECOND, most_keys=10), 0
    for now, _, randomness in traffic(lambda _: 10_000, 60, ONE):
        if randomness >= NEVER * 0.9:
            flow = throughput.admit("all", "all", 1, 0.1, now)
            kept += flow.threshold <= randomness
    assert kept / 60 / BUDGET == pytest.approx(1, abs=0.1)


def test_one_trace_that_claims_to_stand_for_very_many_does_not_starve_the_others(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda _: 200, 20, ONE))
    throughput.admit("all", "all", 1, 2.0**-56, START + 20 * SECOND)
    seen = run(throughput, ((now + 20 * SECOND, *trace) for now, *trace in traffic(lambda _: 200, 40, ONE)))  # type: ignore[misc]
    assert sum(trace.kept for trace in seen) / 40 / BUDGET == pytest.approx(1, abs=0.15)


demands = st.lists(st.tuples(st.floats(0.01, 1e6), st.floats(0.001, 1)), min_size=1, max_size=20)


@given(demands, st.floats(0.1, 1e6), st.floats(0, 0.5))
def test_shares_add_up_to_the_budget_unless_all_is_kept(
    rates: list[tuple[float, float]], budget: float, least: float
) -> None:
    wanted = []
    for rate, sampled in rates:
        demand = Demand()
        demand.add(rate, sampled)
        wanted.append(demand)
    probabilities = allot(wanted, [rate for rate, _ in rates], budget, least)
    kept = sum(demand.kept_at(probability) for demand, probability in zip(wanted, probabilities, strict=True))
    assert all(least <= probability <= 1 for probability in probabilities)
    floor = sum(demand.kept_at(least) for demand in wanted)
    assert kept == pytest.approx(max(floor, min(budget, sum(rate for rate, _ in rates))), rel=1e-6)
