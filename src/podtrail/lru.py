"""The bounded mapping of the whole tree: it lets go of what was not written for longest."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(OrderedDict[K, V]):
    """A mapping written with `put`, which keeps it at `most` entries. Reading changes nothing, `move_to_end` refreshes.

    Entries are looked up at the speed of a dict: no method of that is overridden.
    """

    def __init__(self, most: int) -> None:
        """Hold at most so many entries."""
        super().__init__()
        self.most = most

    def __reduce__(self) -> Any:
        return type(self), (self.most,), None, None, iter(self.items())

    def put(self, key: K, value: V) -> tuple[K, V] | None:
        """Write an entry as the latest; return the one that was let go for it, if any."""
        self[key] = value
        self.move_to_end(key)
        return self.popitem(last=False) if len(self) > self.most else None


def forget_oldest(table: OrderedDict[K, V], parts: int) -> None:
    """Forget the oldest of so many equal parts of a table, and rebuild it."""
    for _ in range(-(-len(table) // parts)):
        table.popitem(last=False)
    fit(table)


def fit(table: dict[K, V]) -> None:
    """Rebuild the table of a dict for its present entries: it keeps the size that it once needed."""
    entries = list(table.items())
    table.clear()
    table.update(entries)
