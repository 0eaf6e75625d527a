from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.story.time_range import TimeRange, read_moment

NOW = 1_790_000_000 * 10**9  # 2026-09-21T14:13:20Z
MINUTE = 60 * 10**9


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", NOW),
        ("30m", NOW - 30 * MINUTE),
        ("-30m", NOW - 30 * MINUTE),
        ("1d", NOW - 1440 * MINUTE),
        ("14:02", NOW - 11 * MINUTE - 20 * 10**9),
        ("14:02:20", NOW - 11 * MINUTE),
        ("14:14", NOW - 1440 * MINUTE + 40 * 10**9),
        ("2026-09-21T14:13:20Z", NOW),
        ("2026-09-21T16:13:20+02:00", NOW),
        ("2026-09-21T14:13", NOW - 20 * 10**9),
        ("1790000000", NOW),
        ("1790000000.5", NOW + 500_000_000),
        ("1790000000000000001", NOW + 1),
    ],
)
def test_moments_as_people_write_them(text: str, at: int) -> None:
    assert read_moment(text, NOW, "from") == at


@pytest.mark.parametrize(
    "text", ["yesterday", "25:00", "12:60", "1:2", "-", "1.5.2", "30", "--30m", "١٤:٠٢", "9" * 99, "\x1b"]
)
def test_what_is_no_moment_is_said_with_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"from is no moment: .*; write 14:02, 30m"):
        read_moment(text, NOW, "from")


def test_a_range_ends_up_to_a_minute_ahead_today() -> None:
    end = NOW + 40 * 10**9
    assert TimeRange.read("14:00", "14:14", NOW) == TimeRange(NOW - 800 * 10**9, end)
    assert read_moment("14:14", NOW, "until:") == end
    assert read_moment("14:14", NOW, "since:") == end - 1440 * MINUTE
    assert read_moment("14:14:21", NOW, "to") == NOW + 61 * 10**9 - 1440 * MINUTE


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    with suppress(ValueError):
        read_moment(text, NOW, "to")


def test_a_range_ends_now_and_begins_half_an_hour_before() -> None:
    assert TimeRange.read("", "", NOW) == TimeRange(NOW - 30 * MINUTE, NOW)
    assert TimeRange.read("", "14:02", NOW).length == 30 * MINUTE
    with pytest.raises(ValueError, match="must be before"):
        TimeRange.read("14:10", "14:02", NOW)
    with pytest.raises(ValueError, match="before 1970"):
        TimeRange.read("1960-01-01", "", NOW)


@given(st.integers(0, 2 * NOW), st.integers(1, NOW))
def test_a_range_as_it_is_written_holds_the_range_and_at_most_two_microseconds_more(start: int, length: int) -> None:
    span = TimeRange(start, start + length)
    read = TimeRange.read(span.query["from"], span.query["to"], NOW)
    assert read.start <= span.start
    assert span.end <= read.end
    assert read.length - span.length < 2_000


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(-(10**6), 2 * 10**6))
def test_a_moment_is_in_a_range_or_in_the_one_before_but_never_in_both(start: int, length: int, at: int) -> None:
    span = TimeRange(start, start + length)
    assert span.around(at) + span.before().around(at) == (start - length <= at <= start + length)
