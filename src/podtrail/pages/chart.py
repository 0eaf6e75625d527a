"""Bars as numbers: where they start and how wide they are, in the units of the drawing."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podtrail.story import duration

AXIS: Final = 1000
"""Width of a drawing, in its own units."""
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
    values: Sequence[float | None], ranges: Sequence[tuple[float, float] | None] = (), limit: float | None = None
) -> Chart:
    """Return the bars of values that are not negative; the largest of all that is shown spans the drawing.

    Args:
        values: one a bar; None is drawn as nothing.
        ranges: between what each value lies, where that is told.
        limit: what they should not pass, in the values' unit.
    """
    between = list(ranges) or [None] * len(values)
    shown = [value or 0.0 for value in values]
    highest = [span[1] for span in between if span is not None]
    most = max([*shown, *highest, limit or 0.0]) or 1.0

    def at(value: float) -> int:
        return round(AXIS * value / most)

    bars = [
        Bar(max(_LEAST, at(value)) if value else 0, *((at(span[0]), at(span[1])) if span else (None, None)))
        for value, span in zip(shown, between, strict=True)
    ]
    return Chart(bars, None if limit is None else min(at(limit), AXIS - 1))


def span_bar(offset: int, length: int | None, whole: int) -> tuple[int, int]:
    """Return start and width of a span's bar on the axis, at least a line that can be seen; all times nanoseconds."""
    if whole <= 0:
        return 0, AXIS
    start = min(AXIS - _LEAST, max(0, offset * AXIS // whole))
    width = max(_LEAST, (length or 0) * AXIS // whole)
    return start, min(width, AXIS - start)


def ticks(whole: int) -> tuple[str, ...]:
    """Return the words under an axis of `whole` nanoseconds: start, quarters, end."""
    return tuple("0" if not part else duration(whole * part // 4) for part in range(5))
