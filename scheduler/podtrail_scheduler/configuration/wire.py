"""How a dataclass says what its fields are in a document: Go's type, the key where it is not the name in camel case.

The types are those that kube-scheduler names when a value does not fit (`of type int32`).
"""

from dataclasses import Field, field
from typing import Annotated, Any, TypeVar

Value = TypeVar("Value")

Int32 = Annotated[int, "int32"]
Int64 = Annotated[int, "int64"]
Float32 = Annotated[float, "float32"]
Nanoseconds = Annotated[int, "duration"]
Base64 = Annotated[bytes, "[]uint8"]
RAW = "raw"  # taken as it is


def described(default: Value, description: str, *, key: str = "") -> Value:
    """A field with what the reference says of it, and its `key` in the document if the name does not give it."""
    made: Any = field(default=default, metadata={"description": description, "key": key})
    return made  # type: ignore[no-any-return]


def key_of(each: "Field[Any]") -> str:
    """The key of a dataclass field in a document."""
    given = each.metadata.get("key")
    if given:
        return str(given)
    first, *rest = each.name.split("_")
    return first + "".join(word.capitalize() for word in rest)
