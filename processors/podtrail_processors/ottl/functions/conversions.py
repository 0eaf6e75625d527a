"""Functions that make one kind of value of another, and the logarithm."""

import math
import struct

from podtrail_processors.ottl.functions.parameters import (
    Function,
    Parameter,
    anything,
    boolean_like,
    double_like,
    integer,
    integer_like,
    parsed_integer,
    text,
    text_like,
)
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import SpanId, TraceId, kind_of

_BASES = range(2, 37)


def _same(value: object) -> object:
    return value


def _bytes_of(value: object) -> bytes | None:
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogateescape")
        case bool():
            return bytes([value])
        case int():
            return value.to_bytes(8, "big", signed=True)
        case float():
            return struct.pack(">d", value)
    raise EvaluationError(f"{kind_of(value)} can't be made bytes")


def _hex(value: object) -> str | None:
    raw = _bytes_of(value)
    return None if raw is None else raw.hex()


def _logarithm(value: float | None) -> float:
    if value is None or not value > 0:
        raise EvaluationError("the logarithm of what is not above 0")
    return math.log(value)


def _parse_integer(target: str, base: int) -> int:
    if not target:
        raise EvaluationError("an empty string is no integer")
    if base == 0:
        return parsed_integer(target.replace("_", ""), 0 if not _is_old_octal(target) else 8)
    if base not in _BASES:
        raise EvaluationError(f"no base: {base}")
    return parsed_integer(target, base)


def _is_old_octal(target: str) -> bool:
    digits = target.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


def _raw_id(value: object, size: int) -> bytes:
    if isinstance(value, bytes) and len(value) == size:
        return value
    if isinstance(value, str) and len(value) == 2 * size:
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    raise EvaluationError(f"an id has {size} bytes or {2 * size} hexadecimal digits")


FUNCTIONS = (
    Function("Bool", (Parameter("value", boolean_like),), _same),
    Function("Double", (Parameter("value", double_like),), _same),
    Function("Hex", (Parameter("value", anything),), _hex),
    Function("Int", (Parameter("value", integer_like),), _same),
    Function("Log", (Parameter("value", double_like),), _logarithm),
    Function("ParseInt", (Parameter("target", text), Parameter("base", integer)), _parse_integer),
    Function("SpanID", (Parameter("value", anything),), lambda value: SpanId(_raw_id(value, 8))),
    Function("String", (Parameter("value", text_like),), _same),
    Function("TraceID", (Parameter("value", anything),), lambda value: TraceId(_raw_id(value, 16))),
)
"""Functions that make one kind of value of another, and the logarithm."""
