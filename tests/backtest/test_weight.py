"""Figures of samples: thresholds in trace states, intervals that hold what is true."""

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.backtest.weight import Probabilities, WeightedShare, WeightedTotal, probability_of, wilson
from podtrail.otlp import Group, frame, set_trace_state, split
from podtrail.testing.attempts import MadeAttempt


def bearing(state: str) -> Group:
    (group,) = MadeAttempt().groups()
    return group._replace(spans=frame([set_trace_state(span, state) for span in split(group.spans)]))


@pytest.mark.parametrize(
    ("state", "probability"),
    [
        ("ot=th:0", 1.0),
        ("ot=th:8", 0.5),
        ("ot=th:c", 0.25),
        ("vendor=1,ot=rv:01234567890123;th:e", 0.125),
        ("ot=rv:01234567890123", None),
        ("hot=th:8", None),
        ("vendor=th:8", None),
        ("ot=th:xyz", None),
        ("ot=th:ffffffffffffff", 1e-6),
    ],
)
def test_the_probability_of_a_trace_is_what_its_threshold_says(state: str, probability: float | None) -> None:
    assert probability_of(bearing(state)) == probability


def test_what_is_noted_of_a_trace_goes_before_what_is_said_of_all() -> None:
    told, silent = bearing("ot=th:8"), MadeAttempt(number=2).groups()[0]
    probabilities = Probabilities(0.05)
    probabilities.note([told, silent])
    assert probabilities.of(told.trace_id) == 0.5
    assert probabilities.of(silent.trace_id) == 0.05


def test_where_nothing_was_left_out_there_is_no_interval() -> None:
    share, total = WeightedShare(), WeightedTotal()
    for at in range(10):
        share.add(1.0, within=at < 3)
        total.add(5, 1.0)
    assert (share.value, share.interval) == (0.3, None)
    assert (total.estimate, total.error) == (50, 0)


def test_none_of_a_small_sample_is_not_none_of_all() -> None:
    share = WeightedShare()
    for _ in range(20):
        share.add(0.05, within=False)
    assert share.interval is not None
    assert share.interval.low == 0
    assert 0.1 < share.interval.high < 0.2


@given(st.floats(0, 1), st.floats(1, 1e9))
def test_an_interval_holds_the_share_itself_and_lies_within_all(share: float, count: float) -> None:
    low, high = wilson(share, count)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1


def test_intervals_of_samples_hold_the_truth_about_95_times_in_100() -> None:
    chance = random.Random(7)
    population = [(size % 40 + 1, size % 5 == 0) for size in range(4000)]
    truth, spans = 0.2, sum(size for size, _ in population)
    held = summed = 0
    for _ in range(200):
        share, total = WeightedShare(), WeightedTotal()
        for size, kept in population:
            if chance.random() < 0.05:
                share.add(0.05, within=kept)
                total.add(size, 0.05)
        low, high = share.interval or (inf, -inf)
        held += low <= truth <= high
        summed += abs(total.estimate - spans) <= total.error * total.estimate
    assert held >= 180
    assert summed >= 180
