"""The range of time that an address asks for: `from=` and `to=`, both ends included."""

from collections.abc import Mapping
from typing import Final

from podtrail.story import HeardBetween
from podtrail.story.time_range import read_moment

_SECOND: Final = 1_000_000_000
_DIGITS: Final = 10


def read_range(query: Mapping[str, str], now: int) -> HeardBetween:
    """Return what `from` and `to` of a query say: Unix seconds with up to nine decimals, or what `read_moment` takes.

    Raises:
        ValueError: that is no range; the text says why.
    """
    since, until = (_moment(query.get(name, ""), name, now) for name in ("from", "to"))
    if since is not None and until is not None and until < since:
        raise ValueError("to is before from, so that nothing can lie between them.")
    return HeardBetween(since, until)


def range_query(within: HeardBetween) -> dict[str, str]:
    """Return the query that asks for a range."""
    ends = {"from": within.since, "to": within.until}
    return {name: _seconds(end) for name, end in ends.items() if end is not None}


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds // _SECOND}.{nanoseconds % _SECOND:09}".rstrip("0").rstrip(".")


def _moment(text: str, name: str, now: int) -> int | None:
    if not text:
        return None
    whole, _, part = text.partition(".")
    digits = f"{whole}{part}"
    if digits.isascii() and digits.isdecimal() and whole and len(whole) <= _DIGITS and len(part) < _DIGITS:
        return int(whole) * _SECOND + int(part.ljust(9, "0"))
    told = read_moment(text, now, name)
    if told < 0:
        raise ValueError(f"{name} is before 1970.")
    return told
