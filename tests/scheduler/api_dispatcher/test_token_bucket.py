"""The rate limit."""

from podtrail_scheduler.api_dispatcher.token_bucket import TokenBucket
from podtrail_scheduler.objects.durations import SECOND


def test_a_burst_then_so_many_a_second() -> None:
    bucket = TokenBucket(2, 3)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert bucket.next_at(0) == SECOND // 2
    assert [bucket.take(SECOND // 2) for _ in range(2)] == [True, False]


def test_no_more_than_a_burst_is_saved() -> None:
    bucket = TokenBucket(1, 2)
    assert [bucket.take(1000 * SECOND) for _ in range(3)] == [True, True, False]


def test_no_rate_limits_nothing() -> None:
    bucket = TokenBucket(0, 0)
    assert all(bucket.take(0) for _ in range(1000))
    assert bucket.next_at(7) == 7
