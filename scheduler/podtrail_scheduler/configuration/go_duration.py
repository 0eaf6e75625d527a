"""Durations as Go reads and prints them (`time.ParseDuration`, `Duration.String`), as nanoseconds."""

import json
import re
from fractions import Fraction

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]*)")
_LARGEST = 2**63 - 1


def parse_go_duration(text: str) -> int:
    """Nanoseconds; ValueError has Go's words."""
    refused = ValueError(f"time: invalid duration {json.dumps(text, ensure_ascii=False)}")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise refused
    total = Fraction(0)
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise refused
        number, unit = part.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {json.dumps(text)}")
        if unit not in _UNITS:
            quoted = json.dumps(unit, ensure_ascii=False)
            raise ValueError(f"time: unknown unit {quoted} in duration {json.dumps(text, ensure_ascii=False)}")
        total += Fraction(number) * _UNITS[unit]
        rest = rest[part.end() :]
    if total > _LARGEST:
        raise refused
    return -int(total) if text.startswith("-") else int(total)


def format_go_duration(nanoseconds: int) -> str:
    """The duration as Go prints it: `15s`, `10m0s`, `1.5s`, `250ms`."""
    if nanoseconds < 0:
        return "-" + format_go_duration(-nanoseconds)
    if not nanoseconds:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if nanoseconds < 1_000 * _UNITS[unit]:
            return _decimal(Fraction(nanoseconds, _UNITS[unit])) + unit
    minutes, below = divmod(nanoseconds, _UNITS["m"])
    seconds = _decimal(Fraction(below, _UNITS["s"])) + "s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(value: Fraction) -> str:
    whole, rest = divmod(value, 1)
    digits = f"{int(rest * 10**9):09d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
