"""A memory of bounded size and age."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, Literal, TypeVar

from podtrail.lru import Lru, fit

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T", int, float)
Reason = Literal["ttl", "full", "memory"]


def first(times: Iterable[T | None]) -> T | None:
    """Return the earliest of some times; None if there is none."""
    return min((time for time in times if time is not None), default=None)


_FEW_PARTS = 2
"""Of which the oldest is a large part: then the table is rebuilt, too."""


class Recent(Generic[K, V]):
    """Values by key, as they were last put: beyond `limit` entries, or older than `ttl`, the oldest are forgotten.

    `forgotten` is told of each; it is not called for what is popped. Times are nanoseconds, and must not go backwards.
    """

    def __init__(self, limit: int, ttl: int, forgotten: Callable[[K, V, Reason], None]) -> None:
        self._entries: Lru[K, tuple[int, V]] = Lru(limit)
        self._ttl = ttl
        self._forgotten = forgotten

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """Return a value without making it younger."""
        entry = self._entries.get(key)
        return None if entry is None else entry[1]

    def put(self, key: K, value: V, now: int) -> None:
        """Remember a value as just seen."""
        if oldest := self._entries.put(key, (now, value)):
            self._forgotten(oldest[0], oldest[1][1], "full")

    def refresh(self, key: K, now: int) -> V | None:
        """Return a value and make it as young as one just put."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] != now:
            self._entries[key] = (now, entry[1])
            self._entries.move_to_end(key)
        return entry[1]

    def replace(self, key: K, value: V) -> None:
        """Change the value of a key without making it younger.

        Raises:
            KeyError: there is none.
        """
        self._entries[key] = (self._entries[key][0], value)

    def pop(self, key: K) -> V | None:
        """Take a value out."""
        entry = self._entries.pop(key, None)
        return None if entry is None else entry[1]

    def forget_oldest(self) -> None:
        """Forget what was not put for longest.

        Raises:
            KeyError: there is nothing.
        """
        self._forget("full")

    def deadline(self) -> int | None:
        """Return when the oldest entry reaches its age; None if there is none."""
        for seen, _ in self._entries.values():
            return seen + self._ttl
        return None

    def expire(self, now: int) -> None:
        """Forget what has reached its age."""
        while self._entries:
            seen, _ = next(iter(self._entries.values()))
            if seen + self._ttl > now:
                return
            self._forget("ttl")
        self._entries.clear()  # its table is kept until then

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts, because memory is short."""
        for _ in range(-(-len(self._entries) // parts)):
            self._forget("memory")
        if parts <= _FEW_PARTS:
            fit(self._entries)

    def _forget(self, reason: Reason) -> None:
        key, (_, value) = self._entries.popitem(last=False)
        self._forgotten(key, value, reason)

    def dated(self) -> Iterator[tuple[K, V, int]]:
        """Yield key, value and when it was last put, oldest first."""
        for key, (seen, value) in self._entries.items():
            yield key, value, seen

    def saved(self) -> tuple[tuple[K, int, V], ...]:
        """Return key, time and value of all entries, oldest first."""
        return tuple([(key, seen, value) for key, (seen, value) in self._entries.items()])

    def restore(self, rows: Iterable[tuple[K, int, V]]) -> None:
        """Take entries in; meant for an empty memory."""
        for key, seen, value in rows:
            self.put(key, value, seen)

    def move_in(self, other: "Recent[K, V]") -> None:
        """Take what another remembers, with its ages; meant for an empty memory."""
        for key, value, seen in other.dated():
            self.put(key, value, seen)
