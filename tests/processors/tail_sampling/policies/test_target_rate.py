"""`target_rate`: probabilities that keep to a rate, are recorded, and let counts be recovered."""

import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.probability import ALWAYS, NEVER, probability_of, randomness_of, read_sampling_state
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.voting.allotment import SampledAmounts, allot
from podtrail_processors.tail_sampling.voting.throughput import LEAST_BUDGET, MOST_BUDGET, OTHER, Throughput

from podtrail.otlp import SpanView, Status, split
from tests.sizes import large

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


@pytest.mark.parametrize("at", [20, 29.9])
def test_after_a_jump_of_ten_times_the_target_holds_again_within_seconds(throughput: Throughput, at: float) -> None:
    seen = run(throughput, traffic(lambda now: 200 if now < at else 2000, 50, ONE))
    assert achieved(seen, 20, 40) < 1.6
    assert achieved(seen, 33, 50) == pytest.approx(1, abs=0.1)


def test_after_a_fall_to_a_tenth_probabilities_rise_step_by_step(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda now: 2000 if now < 30 else 200, 90, ONE))
    assert achieved(seen, 30, 40) < achieved(seen, 40, 50) < achieved(seen, 50, 60)
    assert achieved(seen, 65, 90) == pytest.approx(1, abs=0.1)


def test_after_silence_the_first_burst_is_bounded(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda now: 0 if 30 < now < 90 else 2000, 120, ONE))
    assert achieved(seen, 90, 95) < 2.2
    assert achieved(seen, 95, 120) == pytest.approx(1, abs=0.1)


def test_rare_keys_are_kept_whole_and_frequent_ones_thinned(throughput: Throughput) -> None:
    seen = run(throughput, traffic(lambda _: 1000, 60, {"Success": 0.97, "Unschedulable": 0.029, "Error": 0.001}))
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
    """Of each key the estimate is within 4.5 standard errors, by the variance that follows from the probabilities."""
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
@settings(max_examples=large(25, 100))
def test_the_same_traces_at_the_same_times_get_the_same_thresholds(
    steps: list[tuple[int, int, int]], budget: float
) -> None:
    def thresholds() -> list[int]:
        throughput, now, found = Throughput(budget, SECOND, most_keys=5), START, []
        for pause, key, amount in steps:
            now += pause
            found.append(throughput.admit(str(key), str(key), amount, 1.0, now).threshold)
            assert len(throughput.flows) <= 6
        return found

    first = thresholds()
    assert first == thresholds()
    assert all(ALWAYS <= threshold < NEVER for threshold in first)


def test_keys_beyond_the_most_share_one_that_is_thinned_too() -> None:
    throughput = Throughput(BUDGET, 10 * SECOND, most_keys=10)
    kept = 0
    for number in range(20_000):
        flow = throughput.admit(str(number), str(number), 1, 1.0, START + number * SECOND // 1000)
        kept += flow.threshold <= randomness_of(random.Random(number).randbytes(16))
    assert len(throughput.flows) <= 11
    assert throughput.flows[OTHER].probability < 0.2
    assert kept / 20 / BUDGET < 1.5


@pytest.mark.parametrize("traces_a_key", [1, 10])
def test_a_flood_of_keys_that_never_come_again_is_kept_to_the_target(traces_a_key: int) -> None:
    throughput, kept = Throughput(BUDGET, 10 * SECOND, most_keys=500), 0
    for number, (now, _, randomness) in enumerate(traffic(lambda _: 1000, 60, ONE)):
        key = number // traces_a_key
        kept += throughput.admit(str(key), str(key), 1, 1.0, now).threshold <= randomness
        assert len(throughput.flows) <= 501
    assert 0.3 < kept / 60 / BUDGET < 1.3


def test_what_was_sampled_before_is_thinned_only_as_far_as_it_was_not() -> None:
    throughput, kept = Throughput(BUDGET, 10 * SECOND, most_keys=10), 0
    for now, _, randomness in traffic(lambda _: 10_000, 20, ONE):
        if randomness >= NEVER * 0.9:
            flow = throughput.admit("all", "all", 1, 0.1, now)
            kept += flow.threshold <= randomness
    assert kept / 20 / BUDGET == pytest.approx(1, abs=0.15)


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
        demand = SampledAmounts()
        demand.add(rate, sampled)
        wanted.append(demand)
    probabilities = allot(wanted, [rate for rate, _ in rates], [1] * len(rates), budget, least)
    kept = sum(demand.kept_at(probability) for demand, probability in zip(wanted, probabilities, strict=True))
    assert all(least <= probability <= 1 for probability in probabilities)
    floor = sum(demand.kept_at(least) for demand in wanted)
    assert kept == pytest.approx(max(floor, min(budget, sum(rate for rate, _ in rates))), rel=1e-6)


def ids(number: int, seed: int = 7) -> list[int]:
    """Return as many trace ids as chance would have them."""
    rng = random.Random(seed)
    return [rng.getrandbits(128) for _ in range(number)]


def states(made: Any) -> dict[int, str]:
    """Return the trace state of each trace that came out, the same on all of its spans."""
    found: dict[int, str] = {}
    for batch in made.out:
        for group in batch.groups:
            for raw in split(group.spans):
                view = SpanView(raw)
                assert found.setdefault(int.from_bytes(view.trace_id, "big"), view.trace_state) == view.trace_state
    return found


@pytest.fixture(name="loaded")
def _loaded(sampler: Make, span: Make, policy: Make) -> Callable[..., Any]:
    """Return what sends traces of two spans for 20 seconds, 50 a second, and returns the sampler."""

    def loaded(*others: object, **about: object) -> Any:
        target = policy("target_rate", **({"traces_per_second": 5} | about))
        made = sampler(*others, target, decision_wait="1s")
        for number, trace in enumerate(ids(1000)):
            status = Status(2, "") if number % 100 == 0 else None
            attributes = {"result": "Error" if status else "Success"}
            root = span(trace, 1, attributes=attributes, status=status, resource={"service.name": "scheduler"})
            made.send(number / 50, root, span(trace, 2, parent=1, attributes={"result": "of a phase"}))
        made.stop(30)
        return made

    return loaded


def test_every_kept_span_tells_the_threshold_that_its_trace_has_passed(loaded: Make) -> None:
    kept = states(loaded())
    assert 50 < len(kept) < 200
    for trace, state in kept.items():
        threshold = read_sampling_state(state).threshold
        assert threshold is not None
        assert threshold <= randomness_of(trace.to_bytes(16, "big"))
    estimate = sum(1 / probability_of(read_sampling_state(state).threshold or 0) for state in kept.values())
    assert estimate == pytest.approx(1000, rel=0.3)


def test_what_another_policy_keeps_for_sure_counts_once(loaded: Make, policy: Make) -> None:
    made = loaded(policy("status_code", status_codes=["ERROR"]))
    failed = {int.from_bytes(v.trace_id, "big") for v in made.verdicts if v.policy == "status_code"}
    kept = states(made)
    assert len(failed) == 10
    assert {kept[trace] for trace in failed} == {"ot=th:0"}
    assert any(state != "ot=th:0" for trace, state in kept.items() if trace not in failed)


def test_what_is_known_of_a_trace_before_counts_and_its_threshold_is_never_lowered(
    sampler: Make, span: Make, policy: Make
) -> None:
    made = sampler(policy("target_rate", traces_per_second=1000))
    made.send(0, span(1, trace_state="ot=th:c;rv:d0000000000000,x=y"), span(2, trace_state="x=y"))
    made.stop(10)
    assert states(made) == {1: "ot=rv:d0000000000000;th:c,x=y", 2: "ot=th:0,x=y"}


def test_says_why_and_why_not(loaded: Make) -> None:
    made = loaded(key=["result", "service.name", "nobody.has.this"])
    said = [(verdict.decision, verdict.explained()[0].why) for verdict in made.verdicts[-200:]]
    assert {decision for decision, _ in said} == {"sampled", "not_sampled"}
    for decision, why in said:
        if "key Success/scheduler/-" in why:
            begins = "kept with" if decision == "sampled" else "not chosen, with"
            rates = r"\d+ traces/s for [\d.]+ of a budget of 5"
            assert re.fullmatch(rf"{begins} probability [\d.]+ % \(key .*: {rates}\)", why), why
        else:
            assert why.startswith("kept with probability 100 % (key Error/scheduler/-: "), why
    assert any("Error" in why for _, why in said)


def test_metrics_show_the_keys_with_probability_and_rates(loaded: Make) -> None:
    made = loaded(key=["result"])
    probability = made.counted("target_rate_probability")
    assert probability["key=Error,policy=target_rate"] == 1
    assert 0.05 < probability["key=Success,policy=target_rate"] < 0.2
    assert made.counted("target_rate_seen_traces_per_second")["key=Success,policy=target_rate"] == pytest.approx(
        50, 0.1
    )
    assert sum(made.counted("target_rate_kept_traces_per_second").values()) == pytest.approx(5, 0.5)


def test_keys_beyond_max_keys_are_counted(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("target_rate", spans_per_second=100, key=["k"], max_keys=2))
    made.send(0, *(span(number, attributes={"k": "x" * 100_000 + str(number)}) for number in range(1, 3)))
    made.send(1, *(span(number, attributes={"k": number}) for number in range(3, 8)))
    made.stop(10)
    assert made.counted("target_rate_keys_folded") == {"policy=target_rate": 4}
    assert set(made.counted("target_rate_probability")) == {
        f"key={key},policy=target_rate" for key in ("x" * 64, "3", "(other)")
    }


def test_a_reload_goes_on_with_the_rates_that_were_measured(
    loaded: Make, sampler: Make, span: Make, policy: Make
) -> None:
    before = loaded()
    after = sampler(policy("target_rate", traces_per_second=5), decision_wait="1s")
    after.under_test.take_over(before.under_test, START + 30 * SECOND)
    for number, trace in enumerate(ids(100, seed=8)):
        after.send(30 + number / 50, span(trace))
    after.stop(40)
    assert len(after.kept) < 50
    assert before.counted("target_rate_probability") == {}


def test_bytes_and_spans_are_targets_too(loaded: Make) -> None:
    spans = len(states(loaded(traces_per_second=None, spans_per_second=10)))
    assert 50 < spans < 200
    assert 20 < len(states(loaded(traces_per_second=None, bytes_per_second=500))) < 200


def test_shards_divide_the_target(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("target_rate", traces_per_second=5), num_shards=4, decision_wait="1s")
    for number, trace in enumerate(ids(2000)):
        made.send(number / 100, span(trace))
    made.stop(30)
    assert len(made.kept) / 20 / 5 == pytest.approx(1, abs=0.5)
    assert made.counted("target_rate_seen_traces_per_second")["key=all,policy=target_rate"] == pytest.approx(100, 0.2)


def test_within_and_only_what_the_others_let_through_is_charged(sampler: Make, span: Make, policy: Make) -> None:
    long = policy("span_count", min_spans=2)
    both = {
        "name": "both",
        "type": "and",
        "and": {"and_sub_policy": [long, policy("target_rate", traces_per_second=1)]},
    }
    made = sampler(both)
    for number in range(1, 41):
        made.send(number / 100, span(number * 2**20))
    made.send(1, span(2**127 + 2**55, 1), span(2**127 + 2**55, 2))
    made.stop(10)
    assert states(made) == {2**127 + 2**55: "ot=th:0"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "spans_per_second, bytes_per_second or traces_per_second must be given"),
        ({"spans_per_second": 1, "traces_per_second": 1}, "only one of"),
        ({"spans_per_second": 0}, "greater than 0"),
        ({"spans_per_second": float("inf")}, "finite"),
        ({"traces_per_second": 1e-300}, "from 1e-06 to 1e\\+15"),
        ({"bytes_per_second": 1e300}, "from 1e-06 to 1e\\+15"),
        ({"spans_per_second": 1, "max_keys": 0}, "greater than or equal to 1"),
        ({"spans_per_second": 1, "adjustment_interval": "10ms"}, "must be at least 1s"),
    ],
)
def test_a_target_that_is_none_is_an_error(
    sampler: Make, policy: Make, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sampler(policy("target_rate", **settings))


@pytest.mark.parametrize("target", [LEAST_BUDGET, MOST_BUDGET])
@pytest.mark.parametrize("shards", [1, 256])
def test_the_least_and_the_highest_target_can_be_met(
    sampler: Make, span: Make, policy: Make, target: float, shards: int
) -> None:
    made = sampler(policy("target_rate", bytes_per_second=target, minimum_percentage=0), num_shards=shards)
    for second in range(8):
        made.send(second, *(span(second << 80 | number << 64) for number in range(1, 20)))
    made.stop(100)
    assert len(made.verdicts) == 8 * 19


@pytest.mark.parametrize("cache", [0, 10])
def test_late_spans_tell_the_threshold_of_their_trace(sampler: Make, span: Make, policy: Make, cache: int) -> None:
    made = sampler(policy("target_rate", traces_per_second=2), decision_cache={"sampled_cache_size": cache})
    kept = 2**56 - 1
    made.send(0, *(span(number << 64) for number in range(1, 501)))
    made.send(1, span(kept, 1))
    made.send(20, span(kept, 2))
    threshold = read_sampling_state(states(made)[kept]).threshold
    assert threshold is not None
    assert threshold > ALWAYS
    assert made.kept[-2:] == [(kept, 1), (kept, 2)]


def test_warns_of_policies_beside_it_that_distort_the_counts(policy: Make) -> None:
    share, target = policy("probabilistic", sampling_percentage=5), policy("target_rate", traces_per_second=5)
    assert not Config.model_validate({"policies": [share]}).warnings()
    ((path, text),) = Config.model_validate({"policies": [target, share]}).warnings()
    assert path == ("policies", 1)
    assert text == "beside target_rate probabilistic distorts the counts that thresholds tell: it chooses otherwise"
