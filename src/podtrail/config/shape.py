"""What a configuration model expects at a path: walks annotations alongside keys and indexes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from podtrail.config.duration import parse_duration
from podtrail.config.model import Secret
from podtrail.config.problem import Path


@dataclass(frozen=True, slots=True)
class Shape:
    """A type without its alternatives, and what annotates it."""

    type: Any
    metadata: tuple[Any, ...] = ()

    @property
    def is_secret(self) -> bool:
        """Tell whether values must not be shown."""
        return self.type is Secret

    @property
    def is_duration(self) -> bool:
        """Tell whether it is a duration in nanoseconds; told by its parser's name, as rooms below have their own."""
        parsers = (note.func for note in self.metadata if isinstance(note, BeforeValidator))
        return any(getattr(parser, "__name__", "") == parse_duration.__name__ for parser in parsers)

    @property
    def model(self) -> type[BaseModel] | None:
        """The model class, None when it is something else."""
        return self.type if isinstance(self.type, type) and issubclass(self.type, BaseModel) else None

    def below(self, key: str | int) -> Iterator["Shape"]:
        """Yield what may stand under a key or index."""
        if self.model is not None:
            for name, field in self.model.model_fields.items():
                if key in (name, field.alias, field.validation_alias):
                    yield from field_shapes(field)
            return
        origin, arguments = get_origin(self.type), get_args(self.type)
        if not isinstance(origin, type) or not arguments:
            return
        if issubclass(origin, Mapping):
            if isinstance(key, str):
                yield from shapes(arguments[1])
            elif arguments[1] is Secret:  # a list of names and values may stand for the map
                yield _NamedSecret(dict)
        elif issubclass(origin, Sequence | AbstractSet) and isinstance(key, int):
            yield from shapes(arguments[0])


class _NamedSecret(Shape):
    """A header in a list of them."""

    __slots__ = ()

    def below(self, key: str | int) -> Iterator[Shape]:
        """Yield what may stand under `name` or `value`."""
        yield Shape(Secret if key == "value" else str)


def shapes(annotation: Any, metadata: tuple[Any, ...] = ()) -> Iterator[Shape]:
    """Yield the alternatives of an annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *notes = get_args(annotation)
        yield from shapes(inner, (*metadata, *notes))
    elif origin in (Union, UnionType):
        for argument in get_args(annotation):
            yield from shapes(argument, metadata)
    else:
        yield Shape(annotation, metadata)


def field_shapes(field: FieldInfo) -> Iterator[Shape]:
    """Yield the alternatives of a model's field."""
    return shapes(field.annotation, tuple(field.metadata))


def shapes_at(model: type[BaseModel], path: Path) -> tuple[Shape, ...]:
    """Return what may stand at a path below a model."""
    found: Iterable[Shape] = (Shape(model),)
    for key in path:
        found = [below for shape in found for below in shape.below(key)]
    return tuple(found)


def known_keys(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Return the keys that models at a path know, as a user writes them."""
    keys = [
        field.alias or name
        for shape in shapes_at(model, path)
        if shape.model is not None
        for name, field in shape.model.model_fields.items()
    ]
    return tuple(dict.fromkeys(keys))
