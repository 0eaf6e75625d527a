"""View models as JSON: the same for the page's API and the terminal's `--json`."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@cache
def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def to_json(value: object) -> Json:
    """Return a view model as JSON values: camelCase keys, ids in hex, `…_unix_nano` as strings of digits as in OTLP.

    Raises:
        TypeError: it is no view model.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case Mapping():
            return {str(key): to_json(inner) for key, inner in value.items()}
        case tuple() if hasattr(value, "_fields"):
            return _object({name: getattr(value, name) for name in value._fields})
        case Sequence():
            return [to_json(inner) for inner in value]
        case _ if is_dataclass(value):
            return _object({field.name: getattr(value, field.name) for field in fields(value)})
        case _:
            raise TypeError(f"no view model: {type(value).__name__}")


def _object(members: Mapping[str, Any]) -> dict[str, Json]:
    return {
        _camel(name): str(member) if name.endswith("_unix_nano") and member is not None else to_json(member)
        for name, member in members.items()
    }
