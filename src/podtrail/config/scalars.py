"""Plain scalars after the core schema of YAML 1.2: no `yes`, no `12:30:45`, no dates; `010` is refused."""

import re
from typing import Final

from podtrail.config.nodes import Scalar

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL: Final = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*")  # 100_000 is a number to the Collector
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NAN: Final = frozenset({".nan", ".NaN", ".NAN"})
_MOST_DIGITS: Final = 40


def read_plain(text: str) -> Scalar:
    """Return what a plain (unquoted) scalar means.

    Raises:
        ValueError: it means different numbers to different readers, or is beyond every number.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(f"{text} is octal to some readers and decimal to others: drop the zeros, or quote it as text")
    if _DECIMAL.fullmatch(text):
        return _whole(text.replace("_", ""), 10)
    if _HEX.fullmatch(text):
        return _whole(text[2:], 16)
    if _OCTAL.fullmatch(text):
        return _whole(text[2:], 8)
    if _FLOAT.fullmatch(text):
        return float(text)
    if infinity := _INFINITY.fullmatch(text):
        return float(f"{infinity.group(1)}inf")
    return float("nan") if text in _NAN else text


def _whole(digits: str, base: int) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"is a number of {len(digits)} digits: quote it if it is text")
    return int(digits, base)
