"""Durations in configurations, written as in Go ("1h30m", "250ms"), held as nanoseconds."""

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": 60 * MINUTE}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def parse_duration(value: object) -> int:
    """Nanoseconds of a duration text.

    Raises:
        ValueError: it is none; the text says how one is written.
    """
    text = str(value)
    parts = _PART.findall(text)
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0
    if not isinstance(value, str) or not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{value!r} is no duration; write a number with its unit, such as 500ms, 30s, 5m or 1h30m")
    return int(sum(Fraction(number) * _UNITS[unit] for number, unit in parts))


def format_duration(duration: int) -> str:
    """The text of so many nanoseconds, in the largest unit that gives a whole number."""
    for unit in ("h", "m", "s", "ms", "us"):
        if duration % _UNITS[unit] == 0:
            return f"{duration // _UNITS[unit]}{unit}" if duration else "0s"
    return f"{duration}ns"


Duration = Annotated[int, BeforeValidator(parse_duration), Field(ge=0), PlainSerializer(format_duration)]
