"""The token bucket: what is there now, and what is reserved of the future."""

import pytest
from podtrail_kubernetes.token_bucket import TokenBucket

SECOND = 1_000_000_000


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


def test_who_reserves_gets_a_burst_and_then_each_token_as_it_flows_in() -> None:
    bucket = TokenBucket(10, 2)
    assert [bucket.reserve(5 * SECOND) - 5 * SECOND for _ in range(4)] == [0, 0, SECOND // 10, SECOND // 5]
    assert bucket.reserve(5 * SECOND + 3 * SECOND // 10) == 5 * SECOND + 3 * SECOND // 10


@pytest.mark.parametrize("qps", [0, -1])
def test_who_reserves_without_a_limit_waits_for_nothing(qps: float) -> None:
    bucket = TokenBucket(qps, 1)
    assert [bucket.reserve(now) for now in (3, 3, 3)] == [3, 3, 3]
