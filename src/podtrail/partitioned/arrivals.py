"""At which offset what arrived at a time was read."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

_MOST: Final = 4096
"""Arrivals that are told apart; with more, every other one counts as read where the one before was."""
_MOST_KEPT: Final = 64
"""In a checkpoint."""

Arrival = tuple[int, int]
"""The time that processors were told, Unix nanoseconds, and the offset."""


class ArrivalOffsets:
    """The arrivals of a partition's records that may still be needed; later ones have higher offsets."""

    def __init__(self, arrivals: Sequence[Arrival] = ()) -> None:
        self._arrivals = list(arrivals)
        self._coarse = 1
        """One of so many arrivals is noted."""
        self._passed = 0

    def add(self, arrival: int, offset: int) -> None:
        """Note an arrival, later than the last."""
        self._passed += 1
        if self._passed < self._coarse and self._arrivals:
            return
        self._passed = 0
        self._arrivals.append((arrival, offset))
        if len(self._arrivals) > _MOST:
            del self._arrivals[1::2]
            self._coarse *= 2

    def forget_before(self, arrival: int | None) -> None:
        """Forget what is not needed to find an arrival and later ones; None: nothing that is known is needed."""
        if arrival is None:
            self._arrivals.clear()
        else:
            del self._arrivals[: max(0, self._at(arrival))]
        if not self._arrivals:
            self._coarse, self._passed = 1, 0

    def find(self, arrival: int) -> Arrival | None:
        """Return the latest that is known not to be later."""
        at = self._at(arrival)
        return self._arrivals[at] if at >= 0 else None

    def kept(self) -> Sequence[Arrival]:
        """Return as many as are worth keeping."""
        step = -(-len(self._arrivals) // _MOST_KEPT) or 1
        return self._arrivals[::step]

    def _at(self, arrival: int) -> int:
        return bisect_right(self._arrivals, (arrival, 1 << 63)) - 1
