"""Bars as numbers: where they start and how wide they are, in the units of the drawing."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podtrail.backtest.weight import Interval

AXIS: Final = 1000
"""Width of a drawing."""
_LEAST: Final = 4
"""Of what is not nothing, so that it can be seen."""


class Bar(NamedTuple):
    """A bar from the left edge, perhaps with the range in which its end lies."""

    width: int
    low: int | None = None
    high: int | None = None


class Chart(NamedTuple):
    """Bars on one scale."""

    bars: Sequence[Bar]
    limit: int | None
    """Where the line stands that they should not pass."""


def chart(
    values: Sequence[float | None], intervals: Sequence[Interval | None] = (), limit: float | None = None
) -> Chart:
    """Return the bars of values that are not negative; the largest of all that is shown spans the drawing."""
    between = list(intervals) or [None] * len(values)
    shown = [value or 0.0 for value in values]
    highest = [interval.high for interval in between if interval is not None]
    most = max([*shown, *highest, limit or 0.0]) or 1.0

    def at(value: float) -> int:
        return round(AXIS * value / most)

    bars = [
        Bar(max(_LEAST, at(value)) if value else 0, *((at(one.low), at(one.high)) if one else (None, None)))
        for value, one in zip(shown, between, strict=True)
    ]
    return Chart(bars, None if limit is None else min(at(limit), AXIS - 1))
