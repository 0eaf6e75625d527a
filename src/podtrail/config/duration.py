"""Durations as Go writes them: `300ms`, `1h30m`, `1.5s`. Held as integer nanoseconds."""

import re
from fractions import Fraction
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

NANOSECOND: Final = 1
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_UNITS: Final = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # the micro sign
    "μs": MICROSECOND,  # the Greek letter mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_TERM: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)")
_EXAMPLES: Final = "write for example 300ms, 1.5s, 2m or 1h30m"
_LONGEST: Final = 2**63 - 1


def parse_duration(value: Any) -> int:
    """Return nanoseconds for text in Go's syntax; a bare whole number is nanoseconds already, as in the Collector.

    Raises:
        ValueError: anything else; the text says what would be right.
    """
    match value:
        case bool() | None:
            raise ValueError(f"must be a duration: {_EXAMPLES}")
        case int():
            nanoseconds = value
        case str():
            nanoseconds = _parse_text(value)
        case _:
            raise ValueError(f"must be a duration with a unit: {_EXAMPLES}")
    if abs(nanoseconds) > _LONGEST:
        raise ValueError("is longer than 292 years, the longest duration there is")
    return nanoseconds


def _parse_text(text: str) -> int:
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total = Fraction(0)
    at = 0
    while at < len(body):
        term = _TERM.match(body, at)
        if term is None:
            raise ValueError(f"{text!r} is not a duration: {_EXAMPLES}")
        number, unit = term.groups()
        if not unit:
            raise ValueError(f"{text!r} lacks a unit (ns, us, ms, s, m, h): {_EXAMPLES}")
        if unit not in _UNITS:
            raise ValueError(f"{text!r} has the unknown unit {unit!r}; units are ns, us, ms, s, m, h")
        total += Fraction(number if number[-1] != "." else number[:-1]) * _UNITS[unit]
        at = term.end()
    if at == 0:
        raise ValueError(f"is empty, must be a duration: {_EXAMPLES}")
    return int(-total if text.startswith("-") else total)


def format_duration(nanoseconds: int) -> str:
    """Return the shortest text that `parse_duration` reads back: `1h30m`, `1.5s`, `300ms`, `0s`."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest < SECOND:
        unit = next(unit for unit in ("ms", "us", "ns") if rest >= _UNITS[unit])
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    parts = [
        f"{hours}h" if hours else "",
        f"{minutes}m" if minutes else "",
        f"{_decimal(rest, SECOND)}s" if rest else "",
    ]
    return sign + "".join(parts)


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    if not part:
        return str(whole)
    return f"{whole}.{str(part).zfill(len(str(unit)) - 1).rstrip('0')}"


Duration = Annotated[int, BeforeValidator(parse_duration)]
"""Nanoseconds, of either sign."""

NonNegativeDuration = Annotated[Duration, Field(ge=0)]
"""Nanoseconds, 0 or more."""

PositiveDuration = Annotated[Duration, Field(gt=0)]
"""Nanoseconds, more than 0."""
