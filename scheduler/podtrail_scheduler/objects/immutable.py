"""Objects that nobody can change: plugins of others are given them, and what one did to them would reach all Pods."""

from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, Never, TypeVar, cast

Key = TypeVar("Key")
Value = TypeVar("Value")


def _refuse(*_: object, **__: object) -> Never:
    raise TypeError("objects of the cluster can't be changed: take a copy, dict(...)")


class FrozenDict(dict[Key, Value]):
    """A dictionary that can't be changed, as quick to read as any."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Value]):
    """A list that can't be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


_EMPTY: FrozenDict[Any, Any] = FrozenDict()
_CHANGEABLE: Final = (dict, list, tuple)


def frozen(given: Any) -> Any:
    """Return a dictionary, list or tuple so that it can't be changed, nor those within it; anything else as it is."""
    if type(given) is dict:
        if not given:
            return _EMPTY
        nested = any(type(value) in _CHANGEABLE for value in given.values())
        return FrozenDict({key: frozen(value) for key, value in given.items()} if nested else given)
    if type(given) is list:
        return FrozenList(map(frozen, given))
    return tuple(map(frozen, given)) if type(given) is tuple else given


class Immutable:
    """A dataclass whose mappings can't be changed either."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in _mappings(cast("Hashable", type(self))):
            given = getattr(self, name)
            if type(given) in _CHANGEABLE:
                object.__setattr__(self, name, frozen(given))


@cache
def _mappings(kind: Hashable) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cast("Any", kind)) if Mapping.__name__ in str(each.type))
