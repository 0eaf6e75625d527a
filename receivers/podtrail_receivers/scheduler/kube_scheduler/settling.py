"""What several sources tell, brought into the order of time: held for a moment in case an earlier thing comes late."""

import heapq
from collections.abc import Iterator
from itertools import count

from podtrail.reconstruction import Heard

WINDOW = 1_000_000_000
"""Nanoseconds. Lines come to a log's file, and changes through a watch, well within a second."""
MOST = 16_384
"""How many things are held at most; sources wait while there are more."""


class Settling:
    """A queue by time. Times are Unix nanoseconds."""

    def __init__(self) -> None:
        self._held: list[tuple[int, int, Heard]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether no more should be put in for now."""
        return len(self._held) >= MOST

    def put(self, heard: Heard) -> None:
        """Take in one thing."""
        heapq.heappush(self._held, (heard.time, next(self._order), heard))

    def take(self, until: int) -> Iterator[Heard]:
        """Yield, by time, what was told of moments up to `until`, and of what is too much the earliest."""
        while self._held and (self._held[0][0] <= until or len(self._held) > MOST):
            yield heapq.heappop(self._held)[2]
