"""Operators between two values; CelError where they do not apply."""

import operator
from collections.abc import Callable, Mapping

from .functions import checked
from .values import NONE, CelError, Optional, Quantity, Semver, equal, kind_of


def find(operand: object, key: object) -> Optional:
    """What is under the key of a map or at the index of a list.

    Raises:
        CelError: it is neither, or the key of a wrong type.
    """
    if isinstance(operand, Mapping):
        return Optional(present=True, value=operand[key]) if key in operand else NONE
    if isinstance(operand, (list, tuple)) and not isinstance(operand, Semver):
        if isinstance(key, bool) or not isinstance(key, int):
            raise CelError(f"unsupported index type '{kind_of(key)}' in list")
        return Optional(present=True, value=operand[key]) if 0 <= key < len(operand) else NONE
    raise CelError(f"unsupported access to '{key}' of {kind_of(operand)}")


def contains(container: object, item: object) -> bool:
    """Whether a list has the item, or a map the key.

    Raises:
        CelError: it is neither.
    """
    if isinstance(container, Mapping):
        return any(equal(key, item) for key in container)
    if isinstance(container, (list, tuple)) and not isinstance(container, Semver):
        return any(equal(each, item) for each in container)
    raise CelError("no such overload")


_ORDER: Mapping[str, Callable[[object, object], bool]] = {
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}


def ordered(sign: str, left: object, right: object) -> bool:
    """The order of two numbers, texts or truths.

    Raises:
        CelError: they are of other types, or of two.
    """
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (left, right))
    same = type(left) is type(right) and isinstance(left, (bool, str))
    if not numbers and not same:
        raise CelError(f"no such overload: {kind_of(left)} {sign} {kind_of(right)}")
    return _ORDER[sign](left, right)


def arithmetic(sign: str, left: object, right: object) -> object:
    """Sums, differences and so on of numbers of one type; texts and lists put together.

    Raises:
        CelError: for other types, and for a division by zero.
    """
    if sign == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if sign == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return [*left, *right]
    if isinstance(left, (bool, Quantity)) or type(left) is not type(right) or not isinstance(left, (int, float)):
        raise CelError(f"no such overload: {kind_of(left)} {sign} {kind_of(right)}")
    assert isinstance(right, (int, float))
    if sign in "+-*":
        return checked({"+": left + right, "-": left - right, "*": left * right}[sign])
    if isinstance(left, float):
        if sign == "%":
            raise CelError("no such overload: double % double")
        return left / right if right else float("nan") if left == 0 else float("inf") * (1 if left > 0 else -1)
    if right == 0:
        raise CelError("division by zero" if sign == "/" else "modulus by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return checked(quotient if sign == "/" else left - quotient * right)
