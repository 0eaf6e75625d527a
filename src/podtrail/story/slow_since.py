"""Since when something is slow: one cut through lengths of time in their order."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

_TIMES_SLOWER: Final = 3.0
"""From so many times the usual on, it is slow."""
LEAST_SLOW: Final = 1_000_000
"""Nanoseconds: what takes less is not slow, whatever was usual."""
_FEWEST: Final = 5
"""On either side of a moment, for it to be one since when something is slow."""
ENOUGH: Final = 2 * _FEWEST
"""Of fewer, nobody can say whether they became slow."""


def turning(took: Sequence[int]) -> int:
    """Return where lengths of time become slow for good; 0 where they don't.

    The place is where the sums of squares of the logarithms, left and right, are least: one cut in two levels.
    """
    logs = [math.log(max(each, 1)) for each in took]
    sums = list(accumulate(logs, initial=0.0))
    whole, best, found = sums[-1], -math.inf, 0
    for at in range(_FEWEST, len(logs) - _FEWEST + 1):
        gain = sums[at] ** 2 / at + (whole - sums[at]) ** 2 / (len(logs) - at)
        if gain > best:
            best, found = gain, at
    if not found:
        return 0
    before, since = median(took[:found]), median(took[found:])
    return found if since >= max(_TIMES_SLOWER * before, LEAST_SLOW) else 0


def median(lengths: Sequence[int]) -> int:
    """Return the middle one of lengths of time, of which there is at least one."""
    return sorted(lengths)[len(lengths) // 2]
