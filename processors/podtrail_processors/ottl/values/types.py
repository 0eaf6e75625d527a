"""The values that conditions compute with.

Beside what attributes hold (`podtrail.otlp.Value`) there are times, lengths of time, ids, and the events and links of
a span, of which only the number is known. Integers have 64 bits, as in Go. A bool is no number.
"""

from dataclasses import dataclass
from typing import TypeGuard

SMALLEST, LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, order=True, slots=True)
class PointInTime:
    """A point in time, Unix nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, order=True, slots=True)
class Length:
    """A length of time in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class TraceId:
    """16 bytes."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class SpanId:
    """8 bytes."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Items:
    """The events or links of a span."""

    count: int


def wrapped(number: int) -> int:
    """Return an integer as 64 bits hold it."""
    return number if SMALLEST <= number <= LARGEST else (number - SMALLEST) % 2**64 + SMALLEST


def is_number(value: object) -> TypeGuard[int | float]:
    """Say whether a value is an int or a double."""
    return type(value) is int or type(value) is float


_NAMES = {
    type(None): "nil",
    bool: "a boolean",
    int: "an integer",
    float: "a double",
    str: "a string",
    bytes: "bytes",
    list: "a list",
    dict: "a map",
    PointInTime: "a time",
    Length: "a duration",
    TraceId: "a trace id",
    SpanId: "a span id",
}


def kind_of(value: object) -> str:
    """Return what kind of value it is, in words."""
    return _NAMES.get(type(value), "a list")
