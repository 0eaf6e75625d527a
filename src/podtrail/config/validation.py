"""Lets a model read a part of a configuration; its complaints become problems at the very key or value."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from podtrail.config.duration import MILLISECOND, SECOND
from podtrail.config.model import Model
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode, child, descend, place_of, plain, put
from podtrail.config.problem import Path, Position, Problem
from podtrail.config.pydantic_errors import Complaint, describe, unknown_key
from podtrail.config.shape import Shape, shapes_at

M = TypeVar("M", bound=BaseModel)
_SMALL = 100_000
_TEXT_WANTED = frozenset({"string_type", "literal_error"})


class Validator:
    """Reads parts of one configuration tree, gathering problems and warnings of all of them."""

    def __init__(self, root: Node, gates: Collection[str] = ()) -> None:
        """`gates`: the feature gates that are on, which models find in their validators' context."""
        self._gates = gates
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._root = root

    def problem(
        self, path: Path, message: str, hint: str = "", *, value: bool = False, shown: Path | None = None
    ) -> None:
        """Note a problem at the key (or with `value` the value) of a path; reports show `shown` instead if given."""
        place = place_of(self._root, path, value=value)
        self.problems.append(Problem(place, path if shown is None else shown, message, hint))

    def warn(self, path: Path, message: str, hint: str = "") -> None:
        """Note what is legal but hardly meant."""
        self.warnings.append(Problem(place_of(self._root, path), path, message, hint))

    def read(self, model: type[M], path: Path) -> M | None:
        """Return the model of what stands at a path (nothing there: its defaults), None when it is wrong."""
        node = descend(self._root, path)
        if node is None or (isinstance(node, ScalarNode) and node.value is None):
            node = MapNode({}, place_of(self._root, path))
        if not isinstance(node, MapNode):
            self.problem(path, "must be a map of settings", value=True)
            return None
        undeclared = list(_undeclared((Shape(model),), node, ()))
        for below in undeclared:
            complaint = unknown_key(model, below)
            self.problem((*path, *below), complaint.message, complaint.hint)
        while True:
            try:
                read = model.model_validate(plain(node), context={"gates": self._gates})
            except ValidationError as error:
                errors = error.errors(include_url=False)
                respelled = _respell(node, errors)
                if respelled is node:
                    self.problems.extend(_problems(model, node, errors, path, place_of(self._root, path)))
                    return None
                node = respelled
            except Exception as error:  # noqa: BLE001 - a validator of a component's that fails; it is reported
                self.problem(
                    path, f"{model.__module__}.{model.__name__} can't read it: {type(error).__name__}: {error}"
                )
                return None
            else:
                self._warn_of(read, model, node, path)
                return None if undeclared else read

    def _warn_of(self, read: BaseModel, model: type[BaseModel], node: Node, path: Path) -> None:
        for below, text in _warnings(read):
            self.warn((*path, *below), text)
        for below, hint in _harmless((Shape(model),), node, ()):
            self.warn((*path, *below), "has no effect in podtrail", hint)
        for below, number in _bare_durations((Shape(model),), node, ()):
            unit = _likely_unit(model, below, number)
            self.warn(
                (*path, *below), f"{number} without a unit is {number} nanoseconds", f"did you mean {number}{unit}?"
            )


def _respell(node: MapNode, errors: Sequence[ErrorDetails]) -> MapNode:
    """Put the original text where text is wanted and a reference gave a number, as the Collector does.

    Returns `node` itself when there is nothing to put.
    """
    respelled: Node = node
    for error in errors:
        path = _path(respelled, error["loc"])
        found = descend(respelled, path)
        if error["type"] in _TEXT_WANTED and found is not None and found.spelled is not None:
            respelled = put(respelled, path, ScalarNode(found.spelled, found.position, None, found.origin))
    assert isinstance(respelled, MapNode)
    return respelled


def _path(node: Node, location: tuple[str | int, ...]) -> Path:
    """Return the keys of a pydantic location that exist: tags of unions and names of validators stand among them."""
    path: list[str | int] = []
    for key in location:
        found = child(node, key)
        if found is not None:
            node = found
            path.append(key)
    return tuple(path)


def _problems(
    model: type[BaseModel], node: Node, errors: Sequence[ErrorDetails], above: Path, key: Position
) -> Iterator[Problem]:
    """Yield one problem a place; what the alternatives of a union say about one place is joined.

    `above` and `key` are path and place of the whole; a key that it lacks is reported there.
    """
    by_place: dict[Path, list[Complaint]] = {}
    for error in errors:
        for complaint in describe(error, model, _owner(node, error), node):
            by_place.setdefault(complaint.path, []).append(complaint)
    for path, complaints in by_place.items():
        inside = bool(path) and descend(node, path[:1]) is not None
        position = place_of(node, path, value=complaints[0].at_value) if inside else key
        messages = dict.fromkeys(complaint.message for complaint in complaints)
        hints = dict.fromkeys(complaint.hint for complaint in complaints if complaint.hint)
        secret = any(shape.is_secret for shape in shapes_at(model, path))
        yield Problem(position, (*above, *path), " or ".join(messages), "; ".join(hints), secret)


def _owner(node: Node, error: ErrorDetails) -> Path:
    """Return the path that an error is about; for a missing key that of the map that lacks it.

    A union's tag may be spelled like a key of the map, so the map is told by its content.
    """
    path = _path(node, error["loc"])
    if error["type"] != "missing":
        return path
    for end in range(len(path), -1, -1):
        found = descend(node, path[:end])
        if isinstance(found, MapNode) and _same(plain(found), error["input"]):
            return path[:end]
    return path


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return False
    return {k: v for k, v in one.items() if v is not None} == {k: v for k, v in other.items() if v is not None}


def _warnings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield what a model and the models in it warn of."""
    if isinstance(value, Model):
        for below, text in value.warnings():
            yield (*path, *below), text
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from _warnings(getattr(value, name), (*path, field.alias or name))
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _warnings(below, (*path, key))
    elif isinstance(value, list | tuple):
        for at, below in enumerate(value):
            yield from _warnings(below, (*path, at))


def _undeclared(found: Sequence[Shape], node: Node, path: Path) -> Iterator[Path]:
    """Yield keys that a model would pass over in silence because it says nothing of keys that it does not know."""
    models = [shape.model for shape in found if shape.model is not None]
    silent = bool(models) and all(model.model_config.get("extra") is None for model in models)
    for key, value in _children(node):
        below = [inner for shape in found for inner in shape.below(key)]
        if silent and not below and isinstance(key, str):
            yield (*path, key)
        yield from _undeclared(below, value, (*path, key))


def _harmless(found: Sequence[Shape], node: Node, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield keys of the Collector's that are accepted without effect, unless they are switched off or empty lists."""
    models = [shape.model for shape in found if shape.model is not None and issubclass(shape.model, Model)]
    for key, value in _children(node):
        given = [model.of_the_collector[key] for model in models if key in model.harmless and isinstance(key, str)]
        if given and plain(value) not in (None, False, []):
            yield (*path, key), given[0]
        yield from _harmless([inner for shape in found for inner in shape.below(key)], value, (*path, key))


def _children(node: Node) -> Iterator[tuple[str | int, Node]]:
    match node:
        case MapNode():
            yield from ((key, entry.value) for key, entry in node.entries.items())
        case ListNode():
            yield from enumerate(node.items)
        case _:
            pass


def _likely_unit(model: type[BaseModel], path: Path, number: int) -> str:
    """Return `ms` or `s`, whichever brings a number nearer to the default of its key, or else to 1 s."""
    fields = [
        shape.model.model_fields[name]
        for shape in shapes_at(model, path[:-1])
        if shape.model is not None
        for name in shape.model.model_fields
        if name == path[-1]
    ]
    default = next((field.default for field in fields if isinstance(field.default, int)), 0)
    wanted = abs(default) or SECOND
    distance = {unit: abs(math.log(abs(number) * size / wanted)) for unit, size in (("s", SECOND), ("ms", MILLISECOND))}
    return min(distance, key=distance.__getitem__)


def _bare_durations(found: Sequence[Shape], node: Node, path: Path) -> Iterator[tuple[Path, int]]:
    """Yield durations given as small bare numbers: those are nanoseconds, which nobody means."""
    match node:
        case ScalarNode(value=int(number)) if 0 < abs(number) < _SMALL and any(shape.is_duration for shape in found):
            yield path, number
    for key, value in _children(node):
        below = [inner for shape in found for inner in shape.below(key)]
        yield from _bare_durations(below, value, (*path, key))
