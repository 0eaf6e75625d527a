"""On reload policies go on from what those of the same name and kind remember."""

from collections.abc import Callable
from typing import Any

import pytest

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND

Make = Callable[..., Any]


def limit(rate: int = 1, name: str = "limit") -> dict[str, object]:
    """Return a limit to so many spans a second, and in a burst."""
    return {"name": name, "type": "rate_limiting", "rate_limiting": {"spans_per_second": rate, "burst_capacity": rate}}


def within(type: str, *parts: dict[str, object]) -> dict[str, object]:
    """Return a policy of parts."""
    return {"name": type, "type": type, type: {f"{type}_sub_policy": parts[0] if type == "not" else list(parts)}}


def composite(total: int) -> dict[str, object]:
    """Return a composite with a part that keeps everything."""
    part = {"name": "all", "type": "always_sample"}
    return {
        "name": "c",
        "type": "composite",
        "composite": {"max_total_spans_per_second": total, "composite_sub_policy": [part]},
    }


def bytes_limit(rate: int) -> dict[str, object]:
    """Return a limit in bytes."""
    about = {"bytes_per_second": rate, "burst_capacity": 2 * rate}
    return {"name": "limit", "type": "bytes_limiting", "bytes_limiting": about}


@pytest.mark.parametrize(
    ("before", "after", "decision"),
    [
        (limit(1), limit(1), "not_sampled"),
        (limit(1), limit(5), "not_sampled"),
        (limit(5), limit(3), "sampled"),
        (limit(1, "other"), limit(1), "sampled"),
        (bytes_limit(40), bytes_limit(40), "not_sampled"),
        (bytes_limit(40), limit(1), "sampled"),
        (within("and", limit(1)), within("and", limit(1)), "not_sampled"),
        (within("not", limit(1)), within("not", limit(1)), "sampled"),
        (composite(1), composite(1), "not_sampled"),
    ],
)
def test_what_was_spent_before_a_reload_stays_spent(
    sampler: Make, span: Make, before: dict[str, object], after: dict[str, object], decision: str
) -> None:
    old, new = sampler(before), sampler(after)
    old.send(0, span(1))
    old.pass_time(2)
    new.under_test.take_over(old.under_test, START + 2 * SECOND)
    new.send(0.01, span(2))
    new.pass_time(2.01)
    assert new.decisions == {2: decision}


def test_shards_share_what_was_spent(sampler: Make, span: Make) -> None:
    old, new = sampler(limit(2), num_shards=2), sampler(limit(2), num_shards=1)
    for number in range(20):
        old.send(0, span(number))
    old.pass_time(2)
    new.under_test.take_over(old.under_test, START + 2 * SECOND)
    new.send(0.01, span(99))
    new.pass_time(2.01)
    assert new.decisions == {99: "not_sampled"}
