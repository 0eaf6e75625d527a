import pytest

from podtrail.otlp import Batch
from podtrail.story import PodStory, Stories, attempts_not_held, nearest_held, why_not_held
from podtrail.testing.attempts import START, MadeAttempt, no_room

KEY = MadeAttempt().uid


def pod_of(*numbers: int, most: int = 100) -> PodStory:
    stories = Stories(max_attempts=most)
    for number in numbers:
        stories.observe(Batch(no_room(number=number, start=START + number * 10**9).groups(), 0))
    pod = stories.pod(KEY)
    assert pod is not None
    return pod


def test_of_a_pod_with_many_attempts_the_middle_is_no_longer_held() -> None:
    pod = pod_of(*range(1, 31), most=10)
    assert attempts_not_held(pod) == [
        (2, 21, "no longer held: of a Pod with so many the first and the latest are kept")
    ]
    assert why_not_held(pod, 22) == ""


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (0, "attempts are counted from 1"),
        (2, "before the first attempt that was seen here"),
        (5, "not seen here: neither their spans nor a decision about them came"),
        (9, "the last attempt seen is 7"),
    ],
)
def test_why_an_attempt_is_not_held_is_said(number: int, why: str) -> None:
    assert why_not_held(pod_of(3, 4, 7), number) == why


def test_the_attempts_next_to_one_that_is_not_held_are_found() -> None:
    pod = pod_of(3, 4, 7)
    assert [one.number if one else None for one in nearest_held(pod, 5)] == [4, 7]
    assert [one.number if one else None for one in nearest_held(pod, 1)] == [None, 3]
    assert [one.number if one else None for one in nearest_held(pod, 7)] == [4, None]
