"""Arithmetic on numbers, times and lengths of time."""

from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import Length, PointInTime, is_number, kind_of, wrapped


def calculate(left: object, operator: str, right: object) -> object:
    """Return what comes out. Two integers give an integer (a division drops the fraction), else doubles are used.

    Raises:
        EvaluationError: for a division by zero, and for values that this can't be done with.
    """
    if type(left) is int and type(right) is int:
        return _integers(left, operator, right)
    if is_number(left) and is_number(right):
        return _doubles(float(left), operator, float(right))
    found = _times(left, operator, right)
    if found is None:
        raise EvaluationError(f"{kind_of(left)} {operator} {kind_of(right)} can't be calculated")
    return found


def negative(value: object) -> object:
    """Return the negative of a number.

    Raises:
        EvaluationError: it is no number.
    """
    if not is_number(value):
        raise EvaluationError(f"{kind_of(value)} has no negative")
    return wrapped(-value) if isinstance(value, int) else -value


def _integers(left: int, operator: str, right: int) -> int:
    if operator == "+":
        return wrapped(left + right)
    if operator == "-":
        return wrapped(left - right)
    if operator == "*":
        return wrapped(left * right)
    if not right:
        raise EvaluationError("division by 0")
    quotient = abs(left) // abs(right)
    return wrapped(quotient if (left < 0) == (right < 0) else -quotient)


def _doubles(left: float, operator: str, right: float) -> float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if not right:
        raise EvaluationError("division by 0")
    return left / right


def _times(left: object, operator: str, right: object) -> object:
    if operator not in ("+", "-"):
        return None
    sign = 1 if operator == "+" else -1
    if isinstance(right, Length) and isinstance(left, PointInTime | Length):
        return type(left)(left.nanoseconds + sign * right.nanoseconds)
    if isinstance(left, PointInTime) and isinstance(right, PointInTime) and operator == "-":
        return Length(left.nanoseconds - right.nanoseconds)
    if isinstance(left, Length) and isinstance(right, PointInTime) and operator == "+":
        return PointInTime(left.nanoseconds + right.nanoseconds)
    return None
