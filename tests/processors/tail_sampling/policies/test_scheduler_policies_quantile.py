"""`latency_quantile`: what nearly all recent attempts of a profile took is the measure."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.voting.recent_quantile import RecentQuantile

from podtrail.component import Context
from podtrail.otlp import Batch, Value
from podtrail.testing.attempts import MS, START, MadeAttempt

SECOND = 1_000 * MS
MINUTE = 60 * SECOND
Watch = Any


def quantile(text: str) -> str:
    return f"{{name: p, type: latency_quantile, latency_quantile: {{{text}}}}}"


def lasting(*milliseconds: float, every: int = SECOND, profile: str = "default-scheduler") -> list[MadeAttempt]:
    """Return attempts that took so long, one after the other."""
    return [
        MadeAttempt(
            uid=f"{profile}/{number}",
            duration=round(took * MS),
            start=START + number * every,
            attributes={"scheduler.profile": profile},
        )
        for number, took in enumerate(milliseconds)
    ]


def test_an_attempt_slower_than_nearly_all_before_it_is_kept(watch: Watch) -> None:
    seen = watch(quantile("min_attempts: 100"), lasting(*[10] * 100, 11, 10, 9))
    assert seen.kept == [100]
    compared = "of default-scheduler in the last 10m: 10 ms"
    assert seen.reasons[100] == f"it took 11 ms, longer than 99% of 100 attempts {compared}"
    assert seen.explained[101] == f"it took 10 ms, no longer than 99% of 101 attempts {compared}"


def test_until_there_were_enough_attempts_nothing_is_kept(watch: Watch) -> None:
    seen = watch(quantile("min_attempts: 100"), lasting(*range(1, 100), 1000))
    assert seen.kept == []
    only = "it was compared with nothing: 99 attempts of default-scheduler in the last 10m, 100 needed"
    assert seen.explained[99] == only


def test_profiles_are_compared_with_themselves(watch: Watch) -> None:
    web, batch = lasting(*[10] * 20, 500), lasting(*[1000] * 20, 500, profile="batch")
    both = sorted([*web, *batch], key=lambda one: one.start + one.duration)
    seen = watch(quantile("quantile: 0.9, min_attempts: 20"), both)
    assert [both[at].attributes["scheduler.profile"] for at in seen.kept] == ["default-scheduler"]


def test_attempts_older_than_the_window_no_longer_count(watch: Watch) -> None:
    slow = lasting(*[900] * 100)
    quick = [MadeAttempt(uid=f"later/{at}", start=START + 11 * MINUTE + at * SECOND) for at in range(100)]
    last = MadeAttempt(uid="last", duration=500 * MS, start=START + 13 * MINUTE)
    seen = watch(quantile("min_attempts: 50"), [*slow, *quick, last])
    assert seen.kept == [200]


def test_all_attempts_count_though_the_policy_is_asked_about_few(watch: Watch) -> None:
    failed = "{name: f, type: scheduling_result, scheduling_result: {results: [Error]}}"
    both = f"{{name: p, type: and, and: {{and_sub_policy: [{failed}, {quantile('min_attempts: 100')}]}}}}"
    quick = lasting(*[10] * 100)
    slow = MadeAttempt(uid="slow", result="Error", duration=12 * MS, start=START + 200 * SECOND)
    assert watch(both, [*quick, slow]).kept == [100]


@pytest.mark.parametrize(("begin", "took"), [(0, 5), (START, 0), (START, -5)])
def test_attempts_without_a_length_say_nothing(watch: Watch, begin: int, took: int) -> None:
    odd = [MadeAttempt(uid=str(at), start=begin, duration=took * SECOND) for at in range(3)]
    seen = watch(quantile("quantile: 0.5, min_attempts: 1"), odd)
    assert seen.kept == []


@pytest.mark.parametrize("profile", [7, None, ["x"], "p" * 100_000])
def test_a_profile_that_makes_no_sense_harms_nobody(watch: Watch, profile: Value) -> None:
    odd = [
        MadeAttempt(uid=str(at), start=START + at * SECOND, duration=at * MS, attributes={"scheduler.profile": profile})
        for at in range(1, 5)
    ]
    seen = watch(quantile("quantile: 0.5, min_attempts: 3"), odd)
    assert seen.kept == [3]
    assert len(seen.reasons[3]) < 500


def test_the_profile_not_seen_for_longest_is_forgotten_when_there_are_too_many(watch: Watch) -> None:
    names = ["a", "b", "a", "c", "b"]
    made = [
        MadeAttempt(uid=str(at), start=START + at * SECOND, duration=(at + 1) * MS, attributes={"scheduler.profile": n})
        for at, n in enumerate(names)
    ]
    seen = watch(quantile("quantile: 0.5, min_attempts: 1, max_profiles: 2"), made)
    assert seen.kept == [2]
    assert seen.counted("policy_forgotten") == {"policy=p,reason=full": 2}


def test_the_share_that_is_kept_of_steady_traffic_is_about_one_minus_the_quantile(watch: Watch) -> None:
    rng = random.Random(5)
    took = [rng.lognormvariate(3, 0.7) for _ in range(3_000)]
    seen = watch(quantile("quantile: 0.95, min_attempts: 200"), lasting(*took, every=100 * MS))
    assert 0.04 < len(seen.kept) / (len(took) - 200) < 0.06


def test_a_reload_goes_on_comparing_unless_the_question_changed() -> None:
    def sampler(**asked: object) -> Any:
        part = {"name": "p", "type": "latency_quantile", "latency_quantile": {"min_attempts": 10} | asked}
        return FACTORY.create(FACTORY.Config.model_validate({"policies": [part]}), Context(id="tail_sampling"))

    kept = []
    for asked in ({}, {"min_attempts": 5}, {"window": "5m"}):
        before, after = sampler(), sampler(**asked)
        for number, made in enumerate(lasting(*[10] * 10, 20)):
            if number == 10:
                after.take_over(before, START)
            taker = after if number == 10 else before
            taker.add(Batch(made.groups(), START), START)
            out = taker.drain(START)
        kept.append(out[0].verdicts[0].decision)
    assert kept == ["sampled", "sampled", "not_sampled"]


@settings(max_examples=40)
@given(
    st.lists(st.floats(0, 1e12), min_size=150, max_size=600),
    st.floats(0.5, 0.99),
    st.integers(0, 40),
)
def test_the_share_of_numbers_above_the_answer_is_one_minus_the_quantile(
    numbers: Sequence[float], wanted: float, pause: int
) -> None:
    """Within 3 % of all numbers; equal numbers are on both sides. The window is larger than all of it."""
    recent = RecentQuantile(wanted, 1_000 * MINUTE)
    for at, number in enumerate(numbers):
        recent.add(number, at * pause * SECOND)
    answer = recent.answer(len(numbers) * pause * SECOND)
    above = sum(number > answer for number in numbers) / len(numbers)
    at_least = sum(number >= answer for number in numbers) / len(numbers)
    assert above - 0.03 <= 1 - wanted <= at_least + 0.03


@given(st.lists(st.tuples(st.integers(0, 90), st.floats(0, 1e6)), min_size=1, max_size=80))
def test_what_counts_is_younger_than_the_window_and_nearly_all_of_it(steps: list[tuple[int, float]]) -> None:
    recent, now, seen = RecentQuantile(0.9, 6 * MINUTE), 0, list[int]()
    for pause, number in steps:
        now += pause * SECOND
        recent.add(number, now)
        seen.append(now)
        assert sum(at > now - 5 * MINUTE for at in seen) <= recent.count <= sum(at > now - 6 * MINUTE for at in seen)
        assert recent.answer(now) <= 1e6


def test_two_that_go_on_from_one_learn_for_themselves() -> None:
    first = RecentQuantile(0.5, 6 * MINUTE)
    for at in range(8):
        first.add(at, at * MINUTE)
    second = first.copy()
    assert (second.count, second.answer(8 * MINUTE)) == (first.count, first.answer(8 * MINUTE))
    for _ in range(50):
        second.add(1_000, 8 * MINUTE)
    assert second.answer(8 * MINUTE) > first.answer(8 * MINUTE)
    assert second.count == first.count + 50
