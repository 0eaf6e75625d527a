from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.story.search import SearchError, SearchTerm, glob, point_in_time, quoted, read_terms

KEYS = ("ns", "plugin", "reason", "since")
S = 1_000_000_000
UNKNOWN = (
    "There is no key plugn:. Did you mean plugin:? Keys: ns:, plugin:, reason:, since:. "
    'To find it as a part of a name, quote it: "plugn:x"'
)
NOON = 1_790_856_000 * S
"""2026-10-01T12:00:00Z."""


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("web Default", [("", "web", False), ("", "Default", False)]),
        ("ns:default -plugin:NodeAffinity", [("ns", "default", False), ("plugin", "NodeAffinity", True)]),
        ('reason:"Insufficient cpu" NS:a', [("reason", "Insufficient cpu", False), ("ns", "a", False)]),
        (r'"a \"b\" \\"', [("", 'a "b" \\', False)]),
        ('"foo:bar" -', [("", "foo:bar", False), ("", "-", False)]),
        ("since:14:02 web-0:1f3c", [("since", "14:02", False), ("", "web-0:1f3c", False)]),
    ],
)
def test_a_search_is_terms_joined_by_and(text: str, terms: list[tuple[str, str, bool]]) -> None:
    assert read_terms(text, KEYS) == tuple(SearchTerm(*term) for term in terms)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plugn:x", UNKNOWN),
        ("ns:", "ns: wants a value right behind it."),
        ("ns: default", "ns: wants a value right behind it."),
        ('reason:"a b', 'A quote is not closed: reason:"a b" would be right.'),
        ('""', 'There is nothing between "".'),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(text: str, words: str) -> None:
    with pytest.raises(SearchError) as caught:
        read_terms(text, KEYS)
    assert str(caught.value) == words


def problem_of(reading: Callable[[], object]) -> str:
    """Read something; return what is wrong with it, "" for nothing."""
    try:
        reading()
    except SearchError as error:
        return str(error)
    return ""


@given(st.text())
def test_any_text_is_terms_or_an_error_in_printable_words(text: str) -> None:
    assert problem_of(lambda: read_terms(text, KEYS)).isprintable()


@given(st.text().map(str.strip).filter(bool), st.sampled_from(KEYS))
def test_a_quoted_value_is_read_as_it_was(value: str, key: str) -> None:
    assert read_terms(f"{key}:{quoted(value)}", KEYS) == (SearchTerm(key, value, negated=False),)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("default", "Default", True),
        ("default", "default-2", False),
        ("kube-*,default", "kube-system", True),
        ("*-*-*", "a-b", False),
        ("a*b*c", "a1b2c", True),
        ("ab*b", "ab", False),
        ("*", "", True),
    ],
)
def test_names_are_equal_or_fit_a_pattern(pattern: str, name: str, fits: bool) -> None:
    assert glob(pattern)(name) is fits


@pytest.mark.parametrize(
    ("value", "before_now"),
    [
        ("30m", 1_800),
        ("2d", 48 * 3_600),
        ("11:58", 120),
        ("12:00:01", 86_399),
        ("2026-10-01T11:59:50Z", 10),
        ("2026-10-01T13:59:50+02:00", 10),
    ],
)
def test_a_moment_is_before_now_on_the_clock_or_exact(value: str, before_now: int) -> None:
    assert point_in_time("since", value, NOON) == NOON - before_now * S


@pytest.mark.parametrize("value", ["25:00", "12:60", "soon", "30", "2026-13-01", "9999999999h"])
def test_what_is_no_moment_is_told_by_examples(value: str) -> None:
    with pytest.raises(SearchError, match=r"^since: is no moment: .*; write 14:02, 30m"):
        point_in_time("since", value, NOON)


@given(st.text(), st.integers(min_value=-(2**63), max_value=2**64))
def test_any_text_is_a_moment_or_an_error_in_words(value: str, now: int) -> None:
    assert problem_of(lambda: point_in_time("until", value, now)).isprintable()
