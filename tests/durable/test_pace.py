"""Checkpoints take at most a quarter of what is logged, however what is held grows and falls; and they do come."""

from collections.abc import Callable

import pytest

from podtrail.durable.pace import CheckpointPace

REQUEST, SPANS = 90_000, 512
MEMORIES = 2_000_000
"""Bytes of a checkpoint that no span has: caches, numbers."""
MOST = 1.3


def written(inside: Callable[[int], int], requests: int) -> tuple[float, int]:
    """Return bytes written for each that was logged, and the number of checkpoints; `inside`: spans after a request."""
    pace, logged, total, number = CheckpointPace(), 0, 0, 0
    for at in range(1, requests + 1):
        logged += REQUEST
        held = inside(at)
        if pace.due(logged, held, at * SPANS):
            size = MEMORIES + held * 200
            pace.begun(held, at * SPANS)
            pace.ended(size)
            total, logged, number = total + size, 0, number + 1
    return 1 + total / (requests * REQUEST), number


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(lambda at: at * SPANS, id="nothing is ever decided"),
        pytest.param(lambda at: min(at, 4_000) * SPANS, id="held for long"),
        pytest.param(lambda at: min(at, 10) * SPANS, id="held for a moment"),
        pytest.param(lambda at: (at % 3_000) * SPANS, id="let go at once, again and again"),
        pytest.param(lambda at: max(0, 10_000 - at) * SPANS, id="a backlog that is delivered"),
    ],
)
def test_little_more_is_written_than_came(inside: Callable[[int], int]) -> None:
    ratio, _ = written(inside, 40_000)
    assert ratio <= MOST


def test_checkpoints_come_so_that_the_log_stays_short() -> None:
    _, number = written(lambda at: min(at, 10) * SPANS, 40_000)
    assert number > 40_000 * REQUEST / (64 << 20)
    _, number = written(lambda at: min(at, 4_000) * SPANS, 40_000)
    assert number >= 2


def test_what_is_held_no_longer_does_not_delay_the_next_one() -> None:
    pace = CheckpointPace()
    pace.begun(5_000_000, 5_000_000)
    pace.ended(1 << 30)
    logged, came = 1 << 30, 5_000_000 + (1 << 30) // 200
    assert not pace.due(logged, 5_000_000, came)
    assert pace.due(logged, 1_000, came)
