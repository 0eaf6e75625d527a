"""What has changed in an object since it was made, and putting that into another one like it."""

import random
from array import array
from collections import deque
from types import CellType
from typing import Any, Final, NamedTuple

from podtrail.pipeline.checkpoint.kinds import attributes_of, says_its_state

_EMPTY: Final = ("empty",)
_PLAIN: Final = (int, str, bytes, bool)


class Change(NamedTuple):
    """How an object of a chain differs from one that was just made."""

    content: Any
    """All that is in a container, the state of a source of chance; None where that is as it was."""
    attributes: dict[str, Any]
    gone: tuple[str, ...]
    """The names of attributes that it has no more."""


class Watched:
    """An object as it was when it was made."""

    __slots__ = ("_attributes", "_content", "obj")

    def __init__(self, obj: Any) -> None:
        self.obj = obj
        self._content = _content(obj)
        self._attributes = _attributes(obj)

    def change(self) -> Change | None:
        """Return how it differs now; None when it doesn't."""
        content, attributes = _content(self.obj), _attributes(self.obj)
        before = self._attributes
        news = {
            name: value for name, value in attributes.items() if name not in before or not _is_same(value, before[name])
        }
        gone = tuple(name for name in before if name not in attributes)
        if _are_same(content, self._content):
            content = None
        return Change(content, news, gone) if content is not None or news or gone else None

    def apply(self, change: Change) -> None:
        """Have it differ so."""
        if change.content is not None:
            _fill(self.obj, change.content)
        for name, value in change.attributes.items():
            object.__setattr__(self.obj, name, value)
        for name in change.gone:
            object.__delattr__(self.obj, name)


def _attributes(obj: Any) -> dict[str, Any]:
    return {} if says_its_state(type(obj)) else attributes_of(obj)


def _content(obj: Any) -> Any:
    """Return what is in an object, apart from its attributes, as something that is pickled by its content."""
    if says_its_state(type(obj)):
        return obj.__getstate__()
    match obj:
        case list() | deque():
            return tuple(obj)
        case dict():
            return tuple(obj), tuple(obj.values())
        case set():
            return frozenset(obj)
        case bytearray() | array():
            return bytes(obj)
        case random.Random():
            return obj.getstate()
        case CellType():
            try:
                return (obj.cell_contents,)
            except ValueError:
                return _EMPTY
        case _:
            return ()


def _fill(obj: Any, content: Any) -> None:
    if says_its_state(type(obj)):
        obj.__setstate__(content)
        return
    match obj:
        case list():
            obj[:] = content
        case deque():
            obj.clear()
            obj.extend(content)
        case dict():
            obj.clear()
            for key, value in zip(*content, strict=True):
                obj[key] = value
        case set():
            obj.clear()
            obj.update(content)
        case bytearray():
            obj[:] = content
        case array():
            del obj[:]
            obj.frombytes(content)
        case random.Random():
            obj.setstate(content)
        case CellType():
            obj.cell_contents = content[0]
        case _:
            raise TypeError(f"a {type(obj).__name__} has no content")


def _are_same(content: Any, before: Any) -> bool:
    if type(content) is not tuple:
        return bool(content == before)
    if len(content) != len(before):
        return False
    return all(
        _are_same(one, other) if type(one) is tuple and type(other) is tuple else _is_same(one, other)
        for one, other in zip(content, before, strict=True)
    )


def _is_same(value: Any, before: Any) -> bool:
    return value is before or (type(value) in _PLAIN and type(value) is type(before) and bool(value == before))
