"""Scalars as the Collector decodes them, so that a block written for it means the same here.

A fraction given for an integer is cut off, one string stands for a list of its comma-separated parts, 32-bit numbers
wrap; a text for a number or a number for a text is refused.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        try:
            return int(value)
        except (OverflowError, ValueError):
            raise ValueError("must be a whole number") from None
    return value


def _unsigned(value: Any) -> Any:
    whole = _whole(value)
    if isinstance(whole, int) and whole < 0:
        raise ValueError("must not be negative")
    return whole


def _wrapped(value: Any) -> Any:
    whole = _whole(value)
    if isinstance(whole, int) and not isinstance(whole, bool):
        return (whole + 2**31) % 2**32 - 2**31
    return whole


def _parted(value: Any) -> Any:
    if isinstance(value, str):
        return value.split(",") if value else []
    return value


Int64 = Annotated[int, BeforeValidator(_whole)]
"""A whole number; a fraction is cut off."""

Uint64 = Annotated[int, BeforeValidator(_unsigned)]
"""A whole number, 0 or more."""

Int32 = Annotated[int, BeforeValidator(_wrapped)]
"""A whole number of 32 bits; beyond them it wraps."""

Texts = Annotated[tuple[str, ...], BeforeValidator(_parted)]
"""Texts; one text is parted at its commas, without trimming."""
