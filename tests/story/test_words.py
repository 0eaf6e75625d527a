import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.story import ago, clip, duration, shell_word, visible

S = 1_000_000_000


@pytest.mark.parametrize(
    ("nanoseconds", "words"),
    [
        (None, "-"),
        (0, "0 s"),
        (800, "800 ns"),
        (18_200, "18.2 µs"),
        (8_100_000, "8.1 ms"),
        (999_990_000, "1 s"),
        (4_310_000_000, "4.31 s"),
        (9 * S, "9 s"),
        (252 * S, "4m 12s"),
        (26 * 60 * S, "26m"),
        (3_600 * S + 5 * S, "1h"),
        (90_000 * S, "1d 1h"),
        (-9 * S, "-9 s"),
    ],
)
def test_a_length_of_time_has_at_most_two_units(nanoseconds: int | None, words: str) -> None:
    assert duration(nanoseconds) == words


def test_how_long_ago_is_told_in_whole_seconds() -> None:
    assert [ago(None, 0), ago(5, 5), ago(9 * S, 5 * S), ago(0, 12 * S + 7)] == [
        "never",
        "just now",
        "just now",
        "12 s ago",
    ]


def test_control_and_direction_characters_are_shown() -> None:
    assert visible("a\x1b[31m\u202eb\n\x9b\u200b\ud800") == "a\\x1b[31m\\u202eb\\n\\x9b\\u200b\\ud800"
    assert visible("Größe 漢字 ok") == "Größe 漢字 ok"


@given(st.text())
def test_whatever_came_is_printable_then(text: str) -> None:
    assert visible(text).isprintable()


@given(st.text(), st.integers(min_value=3, max_value=50))
def test_a_clipped_text_keeps_both_ends_and_the_width(text: str, width: int) -> None:
    shown = clip(text, width)
    assert len(shown) <= width
    assert shown == text or (shown[0] == text[0] and "…" in shown)


def test_a_name_in_a_command_is_one_word_whatever_a_shell_would_make_of_it() -> None:
    assert shell_word("default/web-0") == "default/web-0"
    assert shell_word("a; rm -rf ~ $(x)") == "'a; rm -rf ~ $(x)'"
    assert shell_word("a\x1b'") == "'a\\x1b'\"'\"''"
