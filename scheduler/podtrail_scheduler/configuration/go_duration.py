"""Durations as Go reads them (`time.ParseDuration`), as nanoseconds; `podtrail_instrumentation` prints them."""

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
    """The duration in nanoseconds.

    Raises:
        ValueError: it is none, in the words of Go's `time.ParseDuration`.
    """
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
