"""Questions about single values of a field (`Sought`), asked once for each distinct value in a trace (`Seeker`).

Most values of a field are seen again and again (the name of a plugin, a status), and most of them are what nobody
seeks. So each distinct value is looked at once for all who seek something, and a trace is told apart by which of its
values are not known to be dull: a few operations on sets, however many are seeking.
"""

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from typing import Any

_REMEMBERED = 4096
_LARGEST = 512
_NOTHING: frozenset["Sought"] = frozenset()


class Sought:
    """A question about single values of a field."""

    __slots__ = ("_holds", "column", "key")

    def __init__(self, column: str, holds: Callable[[Any], bool], key: str | None = None) -> None:
        """`holds` is asked about values of `column`; of attributes, about KeyValue messages that may have this key."""
        self.column = column
        """A field of spans under OTLP's name, `resource` or `scope`."""
        self._holds = holds
        self.key = None if key is None else key.encode("utf-8", "surrogateescape")
        """The attribute's key, encoded; None where it is about more than one."""

    def is_met_by(self, value: Any) -> bool:
        """Say whether a value is what is sought."""
        return (self.key is None or self.key in value) and self._holds(value)


class Seeker:
    """Tells which of several questions about a field are met, and remembers values up to a bound.

    Of 4,096 values at most, each of 512 bytes at most; when there are more, it starts anew.
    """

    def __init__(self, *, repeats: bool) -> None:
        """`repeats`: whether values are worth remembering."""
        self.asked: set[Sought] = set()
        """What is sought."""
        self.keys: Sequence[bytes] | None = ()
        """The keys of all that is sought; None where something has none."""
        self._repeats = repeats
        self._dull: set[Any] = set()
        self._telling: dict[Any, frozenset[Sought]] = {}

    def seek(self, sought: Sought) -> None:
        """Seek this, too."""
        self.asked.add(sought)
        keys = {one.key for one in self.asked}
        self.keys = None if None in keys else sorted(key for key in keys if key is not None)
        self._forget()

    def met(self, values: Collection[Any]) -> Set[Sought]:
        """Return what is met by at least one of these values."""
        unusual = set(values).difference(self._dull)
        return _NOTHING.union(*map(self._met_by, unusual)) if unusual else _NOTHING

    def _met_by(self, value: Any) -> Iterable[Sought]:
        found = self._telling.get(value)
        if found is None:
            found = frozenset([sought for sought in self.asked if sought.is_met_by(value)])
            if self._repeats and (not isinstance(value, bytes) or len(value) <= _LARGEST):
                self._remember(value, found)
        return found

    def _remember(self, value: Any, found: frozenset[Sought]) -> None:
        if len(self._dull) + len(self._telling) >= _REMEMBERED:
            self._forget()
        if found:
            self._telling[value] = found
        else:
            self._dull.add(value)

    def _forget(self) -> None:
        self._dull.clear()
        self._telling.clear()
