"""What is bounded: a mapping that lets go of what was not written for longest, and results that are remembered."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")
Text = TypeVar("Text", str, bytes)


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


def remembering(
    most: int, longest: int = 4_096
) -> Callable[[Callable[Concatenate[Text, P], V]], Callable[Concatenate[Text, P], V]]:
    """Return a decorator that has a function remember its last results, as `lru_cache` does, in a bounded size.

    Args:
        most: how many results are remembered.
        longest: what is asked about longer texts is not remembered: senders choose how long they are.
    """

    def decorated(function: Callable[Concatenate[Text, P], V]) -> Callable[Concatenate[Text, P], V]:
        known = lru_cache(most)(function)

        @wraps(function)
        def remembered(text: Text, *args: P.args, **kwargs: P.kwargs) -> V:
            if len(text) > longest or (
                args and any(isinstance(arg, str | bytes) and len(arg) > longest for arg in args)
            ):
                return function(text, *args, **kwargs)
            return known(text, *args, **kwargs)  # type: ignore[arg-type]

        return cast("Callable[Concatenate[Text, P], V]", remembered)

    return decorated
