"""A quantile of the numbers of the last minutes, from mergeable sketches instead of the numbers themselves."""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from podtrail.state import StateError

if TYPE_CHECKING:
    from fastdigest import TDigest

_PARTS = 6
_CENTROIDS = 200
"""About 3 KiB a sketch; at the 99th percentile the share above is right within a tenth."""
_AT_ONCE = 256
"""So many numbers go into a sketch together, sorted once."""
_STALE = 100
"""The quantile is taken anew once the numbers have become more by so much of themselves."""


class WindowPart:
    """The numbers of a part of the window.

    A sketch would keep some of them back by itself, and put them in its order when it is copied or written; those that
    wait here do so whoever looks.
    """

    __slots__ = ("_sketch", "_waiting", "count", "ends")

    def __init__(self, ends: int, sketch: "TDigest", waiting: Iterable[float] = (), count: int = 0) -> None:
        self.ends = ends
        self._sketch = sketch
        self._waiting = [*waiting]
        """The latest numbers, which are not in the sketch."""
        self.count = count

    def add(self, number: float) -> None:
        """Take a number."""
        self.count += 1
        self._waiting.append(number)
        if len(self._waiting) >= _AT_ONCE:
            self._sketch.batch_update(self._waiting)
            self._waiting.clear()

    def whole(self) -> "TDigest":
        """Return a sketch of all its numbers, to be changed as one likes."""
        whole = self._sketch.copy()
        if self._waiting:
            whole.batch_update(self._waiting)
        return whole

    def copy(self) -> "WindowPart":
        """Return another of these numbers."""
        return WindowPart(self.ends, self._sketch.copy(), self._waiting, self.count)

    def saved(self) -> "SavedWindowPart":
        """Return its numbers."""
        return SavedWindowPart(self.ends, self._sketch.to_bytes(), tuple(self._waiting), self.count)

    @classmethod
    def restored(cls, saved: "SavedWindowPart") -> "WindowPart":
        """Return the part that was saved.

        Raises:
            StateError: it is damaged.
        """
        from fastdigest import TDigest

        try:
            sketch = TDigest.from_bytes(saved.sketch)
        except (ValueError, TypeError) as error:
            raise StateError(f"it is damaged: a sketch: {error}") from error
        return cls(saved.ends, sketch, saved.waiting, saved.taken)


class SavedWindowPart(NamedTuple):
    """A part of the window in a saved state."""

    ends: int
    sketch: bytes
    waiting: tuple[float, ...]
    taken: int
    """How many numbers."""


class SavedQuantile(NamedTuple):
    """The numbers of a window in a saved state, with the last answer."""

    parts: tuple[SavedWindowPart, ...]
    answer: float
    stale_at: int


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
        part.add(number)
        self.count += 1

    def answer(self, now: int) -> float:
        """Return the quantile of the numbers taken so far, at least one; that of slightly fewer than all there are."""
        self._turn(now)
        if self.count >= self._stale_at:
            last = self._parts[-1].whole()
            whole = last if self._settled is None else self._settled.merge(last)
            self._answer = whole.quantile(self._quantile)
            self._stale_at = self.count + self.count // _STALE + 1
        return self._answer

    def copy(self) -> "RecentQuantile":
        """Return another that knows the same and learns for itself."""
        twin = RecentQuantile(self._quantile, self._window)
        twin._parts.extend(part.copy() for part in self._parts)
        twin._settled, twin.count = self._settled, self.count
        return twin

    def saved(self) -> SavedQuantile:
        """Return its numbers."""
        return SavedQuantile(tuple([part.saved() for part in self._parts]), self._answer, self._stale_at)

    def restore(self, saved: SavedQuantile) -> None:
        """Know the numbers that were saved; meant for an empty one.

        Raises:
            StateError: they are damaged.
        """
        self._parts.extend([WindowPart.restored(part) for part in saved.parts])
        self.count = sum(part.count for part in self._parts)
        self._settle()
        self._answer, self._stale_at = saved.answer, saved.stale_at

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
        self._settle()
        self._stale_at = 0

    def _settle(self) -> None:
        """Put the parts before the last one together."""
        self._settled = None
        for part in list(self._parts)[:-1]:
            whole = part.whole()
            self._settled = whole if self._settled is None else self._settled.merge(whole)
