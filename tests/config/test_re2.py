"""Regular expressions mean what they mean in Go, take time by the text alone, and refuse what would take too much."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config.re2 import NamedGroups, finder


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("a$", "ba", "a\n"),
        ("(?m)a$", "a\nb", "ab"),
        (r"^\d+$", "42", "٤٢"),
        (r"\s", "a b", "a\vb"),
        (r"\Qa.b\E+", "a.bb", "acb"),
        (r"a(?i)b|c", "C", "AB"),
        (r"(?:a(?i:b))c", "aBc", "aBC"),
        ("[[:alpha:]_-]+$", "a_b-", "1"),
        ("[^[:^digit:]]", "5", "x"),
        ("[]a]", "]", "b"),
        (r"[\x41-\x43\]]", "B", "D"),
        ("(?P<one>x)(?<two>y)", "xy", "x"),
        ("a{,2}", "a{,2}", "aa"),
        ("(?U)a+b", "aab", "b"),
        (r"\x{1F600}", "😀", "x"),
        (r"\101", "A", "1"),
        (r"x\z", "ax", "xa"),
        (r"^\p{L}+$", "Größe", "4"),
        (r"\p{Greek}", "λ", "l"),
        ("^.$", "\udcff", "\udcff\udcfe"),
        ("^\ufffd$", "\ud800", "?"),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, matching: str, other: str) -> None:
    found = finder([pattern])
    assert found(matching)
    assert not found(other)


@pytest.mark.parametrize(
    "pattern",
    [
        "[",
        "(",
        ")",
        "a**",
        "a++",
        "a{1001}",
        r"(a)\1",
        "foo(?=bar)",
        "(?<!a)b",
        "(?>a)",
        r"\Z",
        r"\p{Nonsense}",
        "\\",
        "*",
        "\udcff",
        "(a{1000}){1000}",
        "((a{100}){10}){10}{10}",
        r"\pL{1000}",
    ],
)
@pytest.mark.parametrize("read", [NamedGroups, lambda pattern: finder(["fine", pattern])])
def test_what_is_no_pattern_or_a_too_large_one_is_refused(pattern: str, read: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match=r"^invalid regular expression .*: [a-zA-Z]"):
        read(pattern)


@pytest.mark.parametrize("pattern", [r"^(\w+\s?)+$", "(a|a)*$", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*){9}x$"])
def test_no_pattern_takes_longer_than_its_text(pattern: str, in_time: None) -> None:
    for length in (40, 400, 40_000):
        assert finder([pattern])("a" * length + "!") is finder([pattern])("a" * 4 + "!")
        assert NamedGroups(pattern).find("a" * length + "!") == NamedGroups(pattern).find("a" * 4 + "!")


def test_one_of_several_patterns_is_enough_and_none_finds_nothing() -> None:
    assert finder(["a", "b"])("xb")
    assert not finder(["a", "b"])("x")
    assert not finder([])("")


def test_answers_are_the_same_when_they_are_remembered() -> None:
    found = finder(["^a+$"], remembered=2)
    texts = ["a", "b", "aa", "a" * 5000, "b" * 5000] * 3
    assert [found(text) for text in texts] == [True, False, True, True, False] * 3


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_groups_are_cut_from_the_text_as_it_stood(text: str) -> None:
    found = NamedGroups("(?s)^(?P<head>.?)(?P<none>zzz)?(?P<tail>.*)$").find(text + "\udcffé\ud800")
    assert found is not None
    assert found == {"head": found["head"], "none": "", "tail": found["tail"]}
    assert found["head"] + found["tail"] == text + "\udcffé\ud800"


def test_groups_without_names_are_counted() -> None:
    groups = NamedGroups("(?P<b>x)(y)(?:z)(?<a>)")
    assert (len(groups), groups.nameless) == (2, 1)
    assert list(groups.find("xyz") or ()) == ["b", "a"]
    assert groups.find("x") is None
