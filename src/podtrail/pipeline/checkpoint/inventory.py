"""All that a chain consists of when it was just made, found from the chain itself, each object by its path.

The same configuration makes the same chain in every process: so a path means the same object there.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from types import BuiltinMethodType, CellType, FunctionType, MappingProxyType, MethodType
from typing import Any

from podtrail.component import Context
from podtrail.pipeline.checkpoint.errors import CheckpointError
from podtrail.pipeline.checkpoint.kinds import (
    attributes_of,
    described,
    is_state,
    is_understood,
    is_value,
    is_wiring,
    name_of,
    says_its_state,
)

_Child = tuple[str, Any]


class Inventory:
    """The objects of a chain but for mere values, in the order in which they are found."""

    def __init__(self, root: object) -> None:
        """Take stock of what can be reached from an object.

        Raises:
            CheckpointError: there is something of which is not known what it holds; the text says where.
        """
        self.objects: list[Any] = []
        self.paths: list[str] = []
        self.state: list[int] = []
        """Which of them may come to hold something."""
        self._known: dict[int, int] = {}
        self._waiting: deque[_Child] = deque([("chain", root)])
        self._sets: list[_Child] = []
        while self._waiting or self._sets:
            if self._waiting:
                self._visit(*self._waiting.popleft())
            else:
                self._visit_members(*self._sets.pop())

    def _visit(self, path: str, obj: Any) -> None:
        if id(obj) in self._known or is_value(obj):
            return
        if not is_understood(obj):
            raise CheckpointError(
                f"{path} is a {name_of(type(obj))}, of which nothing is known: its owner must have a __getstate__ and "
                "a __setstate__"
            )
        self._known[id(obj)] = len(self.objects)
        if is_state(obj):
            self.state.append(len(self.objects))
            if isinstance(obj, set):
                self._sets.append((path, obj))
        self.objects.append(obj)
        self.paths.append(path)
        self._waiting.extend((path + step, child) for step, child in children_of(obj))

    def _visit_members(self, path: str, members: set[Any]) -> None:
        """Visit what is in a set: only one object, for a set has no order."""
        new = [member for member in members if id(member) not in self._known and not is_value(member)]
        if len(new) > 1:
            raise CheckpointError(f"{path} is a set of several objects that nothing tells apart")
        for member in new:
            self._visit(path + "{}", member)

    def digest(self) -> str:
        """Return what tells this chain from those of other configurations and other versions."""
        hashed = blake2b(digest_size=16)
        for path, obj in zip(self.paths, self.objects, strict=True):
            hashed.update(f"{path} {name_of(type(obj))} {_content(obj)}\n".encode())
        return hashed.hexdigest()


def children_of(obj: Any) -> Iterator[_Child]:
    """Yield what an object is made of, each with the step that leads to it."""
    match obj:
        case Context():
            yield ".rng", obj.rng
        case MethodType() | BuiltinMethodType():
            yield ".__self__", obj.__self__
        case FunctionType():
            if not is_wiring(obj.__module__):
                yield from ((f".<{at}>", cell) for at, cell in enumerate(obj.__closure__ or ()))
        case partial():
            yield ".func", obj.func
            yield ".args", obj.args
            yield ".keywords", obj.keywords
        case CellType():
            yield from _of_cell(obj)
        case list() | tuple() | deque():
            yield from ((f"[{at}]", child) for at, child in enumerate(obj))
        case dict() | MappingProxyType():
            yield from _of_mapping(obj)
        case _:
            pass
    if is_state(obj) and not says_its_state(type(obj)):
        yield from ((f".{name}", child) for name, child in attributes_of(obj).items())


def _of_cell(cell: CellType) -> Iterator[_Child]:
    try:
        yield ".", cell.cell_contents
    except ValueError:  # it is empty
        return


def _of_mapping(mapping: Any) -> Iterator[_Child]:
    for key, child in sorted(mapping.items(), key=lambda item: described(item[0])):
        if not is_value(key):
            yield f"<{described(key)}>", key
        yield f"[{described(key)}]", child


def _content(obj: Any) -> str:
    if not is_state(obj):
        return described(obj)
    if says_its_state(type(obj)):
        return described(obj.__getstate__())
    own = obj if isinstance(obj, list | dict | set) else ()
    return described({name: value for name, value in attributes_of(obj).items() if is_value(value)}) + described(own)
