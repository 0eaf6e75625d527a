"""OTLP JSON's scalar values: what each kind of protobuf field reads and how it is written.

Follows proto3's JSON mapping except for trace and span ids, which OTLP writes in hex. Enums are integers in OTLP; names
such as `SPAN_KIND_SERVER` are accepted when reading, as the Collector does.
"""

import binascii
import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

_HEX = frozenset({"trace_id", "span_id", "parent_span_id"})
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NEGATIVE = re.compile(r"-[0-9]{1,19}", re.ASCII)
_MOST_DIGITS = 20
"""Of an integer in 64 bits. More are read as a float, which takes no quadratic time, and are out of range."""
_TO_STANDARD_BASE64 = str.maketrans("-_", "+/")
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_LONG = frozenset({Field.TYPE_INT64, Field.TYPE_UINT64, Field.TYPE_FIXED64, Field.TYPE_SFIXED64, Field.TYPE_SINT64})
_UNSIGNED = frozenset({Field.TYPE_UINT32, Field.TYPE_FIXED32, Field.TYPE_UINT64, Field.TYPE_FIXED64})


write_string = json.encoder.encode_basestring_ascii
"""Returns a text as JSON, in ASCII and in quotes."""


class Unfit(ValueError):
    """A value that its field can't hold. The text names field and fault, never the value."""


def scalar_reader(field: Field) -> Callable[[object], object]:
    """Return the function that turns a field's JSON value into its Python value, or raises `Unfit`."""
    name = field.json_name
    match field.type:
        case Field.TYPE_STRING:
            return lambda value: value if isinstance(value, str) and value.isascii() else _string(name, value)
        case Field.TYPE_BYTES if field.name in _HEX:
            return lambda value: _hex(name, value)
        case Field.TYPE_BYTES:
            return lambda value: _base64(name, value)
        case Field.TYPE_BOOL:
            return lambda value: _bool(name, value)
        case Field.TYPE_DOUBLE | Field.TYPE_FLOAT:
            return lambda value: _double(name, value)
        case Field.TYPE_ENUM:
            assert field.enum_type is not None
            numbers = {value.name: value.number for value in field.enum_type.values}
            return lambda value: _enum(name, value, numbers)
    bits = 64 if field.type in _LONG else 32
    low, high = (0, 1 << bits) if field.type in _UNSIGNED else (-1 << bits - 1, 1 << bits - 1)
    return lambda value: _integer(name, value, low, high)


def scalar_writer(field: Field) -> Callable[[Any], str]:
    """Return the function that turns a field's Python value into JSON text."""
    match field.type:
        case Field.TYPE_BYTES:
            return _write_hex if field.name in _HEX else _write_base64
        case Field.TYPE_DOUBLE | Field.TYPE_FLOAT:
            return _write_double
        case Field.TYPE_STRING:
            return write_string
    return _write_long if field.type in _LONG else json.dumps


def kind_of(value: object) -> str:
    """Name a JSON value's type as a person would."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise Unfit(f"{name} that is {kind_of(value)} instead of a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unfit(f"{name} with half of a surrogate pair") from error
    return value


def _hex(name: str, value: object) -> bytes:
    text = _string(name, value)
    try:
        read = bytes.fromhex(text)
    except ValueError as error:
        raise Unfit(f"{name} that is not hex") from error
    if len(read) * 2 != len(text):  # fromhex skips blanks
        raise Unfit(f"{name} that is not hex")
    return read


def _base64(name: str, value: object) -> bytes:
    text = _string(name, value).rstrip("=").translate(_TO_STANDARD_BASE64)
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError as error:
        raise Unfit(f"{name} that is not base64") from error


def _bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise Unfit(f"{name} that is {kind_of(value)} instead of a boolean")
    return value


def _double(name: str, value: object) -> float:
    if isinstance(value, str):
        if value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if not _NUMBER.fullmatch(value):
            raise Unfit(f"{name} that is no number")
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unfit(f"{name} that is {kind_of(value)} instead of a number")
    read = float(value)
    if math.isinf(read):
        raise Unfit(f"{name} out of range")
    return read


def _enum(name: str, value: object, numbers: Mapping[str, int]) -> int:
    if isinstance(value, str):
        if value not in numbers:
            raise Unfit(f"{name} that is neither an integer nor a name such as {list(numbers)[1]}")
        return numbers[value]
    return _integer(name, value, -1 << 31, 1 << 31)


def _integer(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, str):
        if len(value) <= _MOST_DIGITS and value.isascii() and value.isdigit():
            value = int(value)
        elif _NUMBER.fullmatch(value):
            value = int(value) if _NEGATIVE.fullmatch(value) else float(value)
        else:
            raise Unfit(f"{name} that is no integer")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unfit(f"{name} that is {kind_of(value)} instead of an integer")
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        raise Unfit(f"{name} that is no integer")
    if not low <= value < high:
        raise Unfit(f"{name} out of range")
    return int(value)


def _write_hex(value: bytes) -> str:
    return f'"{value.hex()}"'


def _write_base64(value: bytes) -> str:
    return f'"{b64encode(value).decode()}"'


def _write_long(value: int) -> str:
    return f'"{value}"'


def _write_double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
