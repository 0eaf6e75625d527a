"""Comparison of values: numbers among each other, everything else with its own kind; unlike kinds are only unequal.

No bytes are as good as nil: so they are in Go, where a slice without elements is none.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from podtrail_processors.ottl.values.types import Length, PointInTime, is_number

Comparator = Callable[[object, object], bool]

_ORDERED = (str, bytes, int, float, bool, PointInTime, Length)


def is_nil(value: object) -> bool:
    """Return whether a value is compared as nil."""
    return value is None or (type(value) is bytes and not value)


def equal(left: object, right: object) -> bool:
    """Return whether two values are equal. Within lists and maps an integer never equals a double."""
    if is_nil(left) or is_nil(right):
        return is_nil(left) and is_nil(right)
    if type(left) is type(right):
        return _same(left, right) if isinstance(left, list | dict) else left == right
    if is_number(left) and is_number(right):
        return float(left) == float(right)
    return False


def _same(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    return left == right


def _unequal(left: object, right: object) -> bool:
    return not equal(left, right)


def _ordering(holds: Callable[[Any, Any], bool], *, for_nils: bool) -> Comparator:
    def compare(left: object, right: object) -> bool:
        if is_nil(left) or is_nil(right):
            return for_nils and is_nil(left) and is_nil(right)
        if type(left) is type(right):
            return isinstance(left, _ORDERED) and holds(left, right)
        if is_number(left) and is_number(right):
            return holds(float(left), float(right))
        return False

    return compare


COMPARATORS: Mapping[str, Comparator] = {
    "==": equal,
    "!=": _unequal,
    "<": _ordering(operator.lt, for_nils=False),
    "<=": _ordering(operator.le, for_nils=True),
    ">": _ordering(operator.gt, for_nils=False),
    ">=": _ordering(operator.ge, for_nils=True),
}
