"""What functions take: parameters that check a value, and convert it where the Collector does."""

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podtrail_processors.ottl.functions.json_text import json_text
from podtrail_processors.ottl.functions.time_text import format_time
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import (
    LARGEST,
    SMALLEST,
    Length,
    PointInTime,
    SpanId,
    TraceId,
    kind_of,
)

Read = Callable[[object], object]
"""Returns a value as its function takes it; EvaluationError when it does not."""


class Parameter(NamedTuple):
    """What a function takes at one place."""

    name: str
    read: Read
    optional: bool = False


class Function(NamedTuple):
    """A function: its name, what it takes and what it does with that."""

    name: str
    parameters: tuple[Parameter, ...]
    call: Callable[..., object]
    """Takes the required parameters in order, and the optional ones that were given by their names."""
    check: Callable[[Mapping[str, object]], None] | None = None
    """Takes the parameters that are constants by name, before any span is seen. ValueError for what can't work."""

    @property
    def least(self) -> int:
        """How many parameters must be given."""
        return sum(not parameter.optional for parameter in self.parameters)


def anything(value: object) -> object:
    """Take any value."""
    return value


def _of(*types: type, name: str) -> Read:
    def read(value: object) -> object:
        if type(value) in types:
            return value
        raise EvaluationError(f"expected {name} but got {kind_of(value)}")

    return read


text = _of(str, name="a string")
integer = _of(int, name="an integer")
boolean = _of(bool, name="a boolean")
a_list = _of(list, name="a list")
a_map = _of(dict, name="a map")
moment = _of(PointInTime, name="a time")
length = _of(Length, name="a duration")


def text_like(value: object) -> str | None:
    """Return a value as text; None for nil."""
    match value:
        case None | str():
            return value
        case bytes():
            return value.hex()
        case TraceId() | SpanId():
            return value.raw.hex()
        case Length():
            return str(value.nanoseconds)
        case PointInTime():
            return json_text(_rfc3339(value.nanoseconds))
    return json_text(value)


def _rfc3339(nanoseconds: int) -> str:
    try:
        written = format_time(nanoseconds, "%Y-%m-%dT%H:%M:%S.%s")
    except ValueError as error:
        raise EvaluationError(str(error)) from None
    return written.rstrip("0").rstrip(".") + "Z"


def element_text(value: object) -> str:
    """Return what is within a list or map as text: as `text_like`, but bytes in base64 and nothing for nil."""
    return b64encode(value).decode() if isinstance(value, bytes) else text_like(value) or ""


def parsed_integer(digits: str, base: int = 10) -> int:
    """Return the integer that a text says.

    Raises:
        EvaluationError: it says none, or one of more than 64 bits.
    """
    bare = digits[1:] if digits[:1] in ("+", "-") else digits
    if bare.isascii() and bare.isalnum() and len(bare) <= 80:
        try:
            number = int(digits, base)
        except ValueError:
            number = None
        if number is not None and SMALLEST <= number <= LARGEST:
            return number
    raise EvaluationError(f"{digits[:40]!r} is no integer")


def integer_like(value: object) -> int | None:
    """Return a value as an integer; None for nil.

    Raises:
        EvaluationError: it can't be made one.
    """
    match value:
        case None:
            return None
        case bool() | int():
            return int(value)
        case float():
            return int(value) if math.isfinite(value) and SMALLEST <= value < LARGEST else SMALLEST
        case str():
            return parsed_integer(value)
    raise EvaluationError(f"{kind_of(value)} can't be made an integer")


def double_like(value: object) -> float | None:
    """Return a value as a double; None for nil.

    Raises:
        EvaluationError: it can't be made one.
    """
    match value:
        case None:
            return None
        case bool() | int() | float():
            return float(value)
        case str() if value == value.strip() and "_" not in value:
            try:
                return float(value)
            except ValueError:
                raise EvaluationError(f"{value[:40]!r} is no number") from None
    raise EvaluationError(f"{kind_of(value)} can't be made a double")


_TRUE, _FALSE = {"1", "t", "T", "true", "TRUE", "True"}, {"0", "f", "F", "false", "FALSE", "False"}


def boolean_like(value: object) -> bool | None:
    """Return a value as a boolean; None for nil.

    Raises:
        EvaluationError: it can't be made one.
    """
    match value:
        case None | bool():
            return value
        case int() | float():
            return value != 0
        case str() if value in _TRUE or value in _FALSE:
            return value in _TRUE
    raise EvaluationError(f"{kind_of(value)} can't be made a boolean")


def rejects_nil(parameter: Parameter) -> bool:
    """Say whether a function fails when a parameter is nil."""
    try:
        parameter.read(None)
    except EvaluationError:
        return True
    return False
