"""A quantile of the numbers of the last minutes, from mergeable sketches instead of the numbers themselves."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastdigest import TDigest

_PARTS = 6
_CENTROIDS = 200
"""About 3 KiB a sketch; at the 99th percentile the share above is right within a tenth."""
_STALE = 100
"""The quantile is taken anew once the numbers have become more by so much of themselves."""


@dataclass(slots=True)
class WindowPart:
    """The numbers of a part of the window."""

    ends: int
    sketch: "TDigest"
    count: int = 0


class RecentQuantile:
    """Takes numbers at times that do not go backwards; answers with a quantile of those of the last `window`.

    The window is kept in six parts; a part is let go as a whole once its beginning has left the window.
    """

    def __init__(self, quantile: float, window: int) -> None:
        """Answer with this quantile, between 0 and 1, of so many nanoseconds."""
        self._quantile = quantile
        self._window = window
        self._length = max(1, window // _PARTS)
        self._parts: deque[WindowPart] = deque()
        self._settled: TDigest | None = None
        """The parts before the last one, put together."""
        self.count = 0
        """How many numbers it answers from."""
        self._answer = 0.0
        self._stale_at = 0

    def add(self, number: float, now: int) -> None:
        """Take a number."""
        self._turn(now)
        part = self._parts[-1]
        part.sketch.update(number)
        part.count += 1
        self.count += 1

    def answer(self, now: int) -> float:
        """Return the quantile of the numbers taken so far, at least one; that of slightly fewer than all there are."""
        self._turn(now)
        if self.count >= self._stale_at:
            last = self._parts[-1].sketch
            whole = last if self._settled is None else self._settled.merge(last)
            self._answer = whole.quantile(self._quantile)
            self._stale_at = self.count + self.count // _STALE + 1
        return self._answer

    def copy(self) -> "RecentQuantile":
        """Return another that knows the same and learns for itself."""
        twin = RecentQuantile(self._quantile, self._window)
        twin._parts.extend(WindowPart(part.ends, part.sketch.copy(), part.count) for part in self._parts)
        twin._settled, twin.count = self._settled, self.count
        return twin

    def _turn(self, now: int) -> None:
        """Begin a new part when it is time, and let go of what has left the window."""
        parts = self._parts
        if parts and now < parts[-1].ends:
            return
        # Imported when there is a number: a configuration is checked, and a sampler made, without it.
        from fastdigest import TDigest

        parts.append(WindowPart((now // self._length + 1) * self._length, TDigest(_CENTROIDS)))
        while parts[0].ends - self._length + self._window <= now:
            self.count -= parts.popleft().count
        self._settled = None
        for part in list(parts)[:-1]:
            self._settled = part.sketch.copy() if self._settled is None else self._settled.merge(part.sketch)
        self._stale_at = 0
