r"""The language of searches on the page and in its API: `ns:default -state:gated attempts:>10 "some words" web`.

Terms are joined by and. A term is `key:value`, or a word that is part of a name; `-` in front turns it round. What
holds blanks or a colon stands in quotes, straight or typographic; in straight ones `\` takes the power from a quote.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from podtrail.config.duration import parse_duration
from podtrail.config.problem import did_you_mean
from podtrail.story.time_range import read_moment
from podtrail.story.words import clip, visible

T = TypeVar("T")
Test = Callable[[T], bool]

_KEY: Final = re.compile(r"([A-Za-z][A-Za-z_.-]*):")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_TYPOGRAPHIC: Final = "\u201c\u201d\u201e\u201f\u00ab\u00bb"
"""Quotes that a chat or a word processor makes of straight ones: they come along when a search is pasted."""
_PASTED: Final = re.compile(rf'[{_TYPOGRAPHIC}]([^"{_TYPOGRAPHIC}]*)["{_TYPOGRAPHIC}]')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_COMPARED: Final = re.compile(r"(>=|<=|>|<|=|)([0-9]{1,9})")
_SHOWN = 60
RANGE_KEYS: Final = {
    "since": "heard of since: since:30m, since:14:02",
    "until": "heard of before: until:14:32, until:10m",
}
"""What every language has, with its meaning."""


class SearchError(ValueError):
    """A search that can't be understood; the text says what is wrong and what would be right."""


class SearchTerm(NamedTuple):
    """One part of a search."""

    key: str
    """"" for a word that stands alone."""
    value: str
    negated: bool


class Key(NamedTuple, Generic[T]):
    """What can be asked for by `name:value`."""

    meaning: str
    """In a few words, with an example."""
    test: Callable[[str, int], Test[T]]
    """Returns the test of a value, at a moment in Unix nanoseconds. Raises SearchError."""


class HeardBetween(NamedTuple):
    """From and to, Unix nanoseconds; None where it is open."""

    since: int | None = None
    until: int | None = None


class Language(NamedTuple, Generic[T]):
    """What things of one kind are searched by, beside `since:` and `until:`."""

    keys: Mapping[str, Key[T]]
    """By name, as it is written before the colon."""
    word: Callable[[str], Test[T]]
    """Returns the test of a word that stands alone, in small letters."""
    heard: Callable[[T], Iterable[tuple[int, int]]]
    """Returns when something was heard of one, from and to, Unix nanoseconds."""

    @property
    def names(self) -> tuple[str, ...]:
        """All keys."""
        return (*self.keys, *RANGE_KEYS)


@dataclass(frozen=True, slots=True)
class Search(Generic[T]):
    """A search that was understood."""

    terms: tuple[SearchTerm, ...]
    tests: tuple[tuple[Test[T], bool], ...]
    """Each with whether it is turned round."""
    range: HeardBetween

    def finds(self, one: T) -> bool:
        """Return whether all terms hold."""
        return all(test(one) is not negated for test, negated in self.tests)

    def asks_for(self, key: str) -> bool:
        """Return whether a key is among the terms."""
        return any(term.key == key for term in self.terms)


NOTHING: Final[Search[Any]] = Search((), ((lambda _: False, False),), HeardBetween())
"""A search that finds nothing."""


def read_search(text: str, language: Language[T], now: int) -> Search[T]:
    """Return the search that a text asks for; relative times count from `now`, Unix nanoseconds.

    Raises:
        SearchError: the text can't be understood.
    """
    terms = read_terms(text, language.names)
    within = _range(terms, now)
    tests: list[tuple[Test[T], bool]] = []
    for term in terms:
        if term.key not in RANGE_KEYS:
            test = language.keys[term.key].test(term.value, now) if term.key else language.word(term.value.lower())
            tests.append((test, term.negated))
        elif term.negated:
            tests.append((_heard(language, _narrowed(HeardBetween(), term, now)), True))
    if within != HeardBetween():
        tests.append((_heard(language, within), False))
    return Search(terms, tuple(tests), within)


def _range(terms: Iterable[SearchTerm], now: int) -> HeardBetween:
    within = HeardBetween()
    for term in terms:
        if term.key in RANGE_KEYS and not term.negated:
            within = _narrowed(within, term, now)
    if within.since is not None and within.until is not None and within.until < within.since:
        raise SearchError("until: is before since:, so that nothing can lie between them.")
    return within


def _narrowed(within: HeardBetween, term: SearchTerm, now: int) -> HeardBetween:
    told = point_in_time(term.key, term.value, now)
    if term.key == "since":
        return within._replace(since=told if within.since is None else max(told, within.since))
    return within._replace(until=told if within.until is None else min(told, within.until))


def _heard(language: Language[T], within: HeardBetween) -> Test[T]:
    since, until = within

    def test(one: T) -> bool:
        return any(
            (since is None or end >= since) and (until is None or start <= until) for start, end in language.heard(one)
        )

    return test


def read_terms(text: str, keys: tuple[str, ...]) -> tuple[SearchTerm, ...]:
    """Return the terms of a search, keys in small letters.

    Raises:
        SearchError: A key is unknown, a value missing, or a quote not closed.
    """
    terms: list[SearchTerm] = []
    rest = text.strip()
    while rest:
        negated = rest[0] == "-" and rest[1:2].strip() != ""
        rest = rest[1:] if negated else rest
        found = _KEY.match(rest)
        key = found[1].lower() if found else ""
        if found and key not in keys:
            raise SearchError(_unknown(found[1], rest.split()[0], keys))
        value, rest = _value(rest[found.end() :] if found else rest, f"{key}:" if found else "")
        if not value:
            raise SearchError(f"{key}: wants a value right behind it." if key else 'There is nothing between "".')
        terms.append(SearchTerm(key, value, negated))
        rest = rest.lstrip()
    return tuple(terms)


def _value(text: str, before: str) -> tuple[str, str]:
    """Return the value that a text begins with, and what follows it."""
    if text.startswith(tuple(_TYPOGRAPHIC)):
        pasted = _PASTED.match(text)
        if pasted is None:
            raise SearchError(f'A quote is not closed: {before}"{_shown(text[1:])}" would be right.')
        return pasted[1].strip(), text[pasted.end() :]
    if not text.startswith('"'):
        value = text.split(maxsplit=1)[0] if text[:1].strip() else ""
        return value, text[len(value) :]
    quoted = _QUOTED.match(text)
    if quoted is None:
        raise SearchError(f'A quote is not closed: {before}{_shown(text)}" would be right.')
    return _ESCAPED.sub(r"\1", quoted[1]).strip(), text[quoted.end() :]


def _unknown(key: str, whole: str, keys: tuple[str, ...]) -> str:
    hint = did_you_mean(_shown(key), [f"{name}:" for name in keys], "Keys")
    hint = hint[0].upper() + hint[1:]
    return f'There is no key {_shown(key)}:. {hint}. To find it as a part of a name, quote it: "{_shown(whole)}"'


def _shown(text: str) -> str:
    return visible(clip(text, _SHOWN))


def quoted(value: str) -> str:
    """Return a value as it is written in a search: in quotes where it must be."""
    if value and not value.startswith(("-", *_TYPOGRAPHIC)) and not re.search(r'[\s":\\,]', value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def glob(pattern: str) -> Callable[[str], bool]:
    """Return a test for names: equal but for capitals, any of several between commas, `*` stands for anything."""
    choices = [one.strip().lower() for one in pattern.split(",") if one.strip()]
    plain = frozenset(one for one in choices if "*" not in one)
    parted = [one.split("*") for one in choices if "*" in one]

    def test(name: str) -> bool:
        small = name.lower()
        return small in plain or any(_fits(small, parts) for parts in parted)

    return test


def named(field: Callable[[T], str]) -> Callable[[str, int], Test[T]]:
    """Return what makes tests of a name of things, as `glob` has it."""

    def make(value: str, _now: int) -> Test[T]:
        fits = glob(value)
        return lambda one: fits(field(one))

    return make


def _fits(name: str, parts: list[str]) -> bool:
    first, *middle, last = parts
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def compared(key: str, value: str) -> Callable[[int], bool]:
    """Return a test for numbers: `10`, `>10`, `<=3`.

    Raises:
        SearchError: It is none.
    """
    found = _COMPARED.fullmatch(value)
    if found is None:
        raise SearchError(f"{key}:{_shown(value)} is no number: {key}:>10, {key}:<3 or {key}:5 would be right.")
    limit = int(found[2])
    match found[1]:
        case ">":
            return lambda count: count > limit
        case "<":
            return lambda count: count < limit
        case ">=":
            return lambda count: count >= limit
        case "<=":
            return lambda count: count <= limit
        case _:
            return lambda count: count == limit


def length_of_time(key: str, value: str) -> int:
    """Return a length of time in nanoseconds: `1s`, `250ms`, `>1m30s`.

    Raises:
        SearchError: It is none.
    """
    try:
        taken = parse_duration(value.lstrip(">="))
    except ValueError as error:
        raise SearchError(f"{key}:{_shown(value)} is no length of time: {_shown(str(error))}.") from None
    if taken < 0:
        raise SearchError(f"{key}: wants a length of time: {key}:1s, {key}:250ms or {key}:1m30s would be right.")
    return taken


def point_in_time(key: str, value: str, now: int) -> int:
    """Return a moment in Unix nanoseconds.

    Raises:
        SearchError: It is none.
    """
    try:
        return read_moment(value, now, f"{key}:")
    except ValueError as error:
        raise SearchError(str(error)) from None
