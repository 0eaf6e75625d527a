"""Budgets as people write them: `2GB/day`, `500 MiB an hour`, `1000000 spans/day`."""

import re
from typing import Final, NamedTuple

DAY: Final = 86_400
_UNITS: Final = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
_TIMES: Final = {"s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": DAY, "day": DAY}
_FORM = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?) *([a-z]+) *(?:/|per | an? ) *([a-z]+)")
_EXAMPLES: Final = 'write for example "2GB/day", "500 MiB an hour" or "1000000 spans/day"'


class DailyBudget(NamedTuple):
    """What may leave in a day."""

    a_day: float
    unit: str
    """`bytes` or `spans`."""

    def __str__(self) -> str:
        return f"{size(self.a_day) if self.unit == 'bytes' else f'{self.a_day:,.0f} spans'} a day"


def parse_budget(text: str) -> DailyBudget:
    """Return a budget.

    Raises:
        ValueError: the text is none; the error's says what would be right.
    """
    found = _FORM.fullmatch(" ".join(text.lower().split()))
    if found is None:
        raise ValueError(f"{text!r} is no budget: {_EXAMPLES}")
    amount, unit, per = float(re.sub("[_,]", "", found[1])), found[2], found[3]
    factor = 1 if unit in ("span", "spans") else _UNITS.get(unit)
    if factor is None:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}: {_EXAMPLES}")
    if per not in _TIMES:
        raise ValueError(f"{text!r} is not for a second, minute, hour or day: {_EXAMPLES}")
    if not 0 < amount * factor < 1e24:
        raise ValueError(f"{text!r} can't be kept to: {_EXAMPLES}")
    return DailyBudget(amount * factor * DAY / _TIMES[per], "spans" if unit.startswith("span") else "bytes")


def size(count: float) -> str:
    """Return bytes in words: `1.95 GB`, `310 B`."""
    unit = "B"
    for bigger in ("kB", "MB", "GB", "TB", "PB"):
        if abs(count) < 999.5:
            break
        count, unit = count / 1000, bigger
    digits = f"{count:.0f}" if unit == "B" or abs(count) >= 99.95 else f"{count:.3g}"
    return f"{digits} {unit}"
