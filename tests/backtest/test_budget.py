"""Budgets and wishes as people write them."""

import pytest

from podtrail.backtest import parse_budget, size
from podtrail.backtest.proposal import KeepWish, parse_wish


@pytest.mark.parametrize(
    ("text", "a_day", "unit"),
    [
        ("2GB/day", 2e9, "bytes"),
        ("2 GB a day", 2e9, "bytes"),
        ("500 MiB an hour", 24 * 500 * 1024**2, "bytes"),
        ("1.5 kB/s", 86_400 * 1500, "bytes"),
        ("1,000,000 spans/day", 1e6, "spans"),
        ("200 spans per second", 200 * 86_400, "spans"),
    ],
)
def test_a_budget_reads_as_people_write_it(text: str, a_day: float, unit: str) -> None:
    assert parse_budget(text) == (a_day, unit)


@pytest.mark.parametrize("text", ["", "2GB", "lots/day", "2 GX/day", "2GB/moon", "0 GB/day", "-1GB/day", "9e99 GB/day"])
def test_what_is_no_budget_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"write for example"):
        parse_budget(text)


def test_bytes_are_told_in_three_digits() -> None:
    assert [size(n) for n in (0, 999, 1_000, 1_460_000_000, 226_300_000)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1.46 GB",
        "226 MB",
    ]


def test_wishes_add_up() -> None:
    assert parse_wish(["failed", "p99 latency"]) == KeepWish(failed=True, quantile=0.99)
    assert parse_wish(["Slower than 1.5s"]) == KeepWish(failed=False, threshold=1_500_000_000)


@pytest.mark.parametrize(
    "texts", [["everything"], ["p99", "slower than 1s"], ["slower than 0s"], ["slower than x"], ["p0"]]
)
def test_a_wish_that_is_not_understood_is_refused(texts: list[str]) -> None:
    with pytest.raises(ValueError, match=r"understood|already|length of time|duration"):
        parse_wish(texts)
