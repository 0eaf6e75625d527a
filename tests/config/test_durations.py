"""Durations in Go's syntax, held as nanoseconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config.types import HOUR, MILLISECOND, MINUTE, SECOND, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("300ms", 300 * MILLISECOND),
        ("1.5s", 1_500 * MILLISECOND),
        ("1h30m", HOUR + 30 * MINUTE),
        ("2h45m10.25s", 2 * HOUR + 45 * MINUTE + 10_250 * MILLISECOND),
        ("-1s", -SECOND),
        ("+1s", SECOND),
        (".5s", 500 * MILLISECOND),
        ("1.s", SECOND),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1ns", 1),
        ("0", 0),
        ("0s", 0),
        ("1.9ns", 1),
    ],
)
def test_reads_what_go_reads(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


def test_a_bare_number_is_nanoseconds() -> None:
    assert parse_duration(1_500_000) == 1_500_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("10", r"'10' lacks a unit"),
        ("ten seconds", r"'ten seconds' is not a duration: write for example 300ms"),
        ("1d", r"'1d' has the unknown unit 'd'; units are ns, us, ms, s, m, h"),
        ("1 s", r"unknown unit ' s'"),
        ("", r"is empty, must be a duration"),
        ("-", r"is empty"),
        (1.5, r"must be a duration with a unit"),
        (True, r"must be a duration"),
        ([], r"must be a duration"),
        ("300000h" * 10, r"longer than 292 years"),
    ],
)
def test_refuses_the_rest_and_says_what_would_be_right(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_duration(value)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_is_read_back(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize("text", ["0s", "300ms", "1.5s", "1h30m", "1h0.5s", "2m", "1us", "7ns", "-1m"])
def test_writes_the_short_form(text: str) -> None:
    assert format_duration(parse_duration(text)) == text
