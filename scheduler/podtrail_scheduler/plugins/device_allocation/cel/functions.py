"""Functions and methods: of the language, and Kubernetes' of quantities and semantic versions."""

import re
from collections.abc import Callable, Mapping, Sequence

import re2

from podtrail_scheduler.objects.quantities import NANO

from .values import NONE, CelError, Optional, Quantity, Semver, equal, kind_of, quantity, semver

_LARGEST = 2**63 - 1


def checked(value: float) -> float:
    """The number, which must not be an integer beyond 64 bits.

    Raises:
        CelError: it is one.
    """
    if isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        raise CelError("integer overflow")
    return value


def call_function(name: str, arguments: Sequence[object]) -> object:
    """What the function returns.

    Raises:
        CelError: it is not known, or does not take these arguments.
    """
    if name == "optional.none" and not arguments:
        return NONE
    function = _FUNCTIONS.get(name)
    if function is None or len(arguments) != 1:
        raise CelError(f"no such overload: {name}({', '.join(map(kind_of, arguments))})")
    try:
        return function(arguments[0])
    except (ValueError, OverflowError) as error:
        raise CelError(f"type conversion error: {name}({kind_of(arguments[0])}): {error}") from error


def call_method(name: str, target: object, arguments: Sequence[object]) -> object:
    """What the method returns.

    Raises:
        CelError: the target does not have it, or it does not take these arguments.
    """
    for kinds, methods in _METHODS:
        method = methods.get(name)
        if isinstance(target, kinds) and not isinstance(target, bool) and method is not None:
            try:
                return method(target, *arguments)
            except (TypeError, AttributeError):
                break
    raise CelError(f"no such overload: {kind_of(target)}.{name}({', '.join(map(kind_of, arguments))})")


def _size(value: object) -> int:
    if isinstance(value, (str, list, tuple, Mapping)) and not isinstance(value, (Semver, Optional)):
        return len(value)
    raise CelError(f"no such overload: size({kind_of(value)})")


def _int(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value):
        return int(checked(int(value)))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(checked(int(value)))
    raise CelError(f"no such overload: int({kind_of(value)})")


def _double(value: object) -> float:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError as error:
            raise CelError(f"type conversion error: {value!r} to double") from error
    raise CelError(f"no such overload: double({kind_of(value)})")


def _string(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, str)):
        return str(value)
    raise CelError(f"no such overload: string({kind_of(value)})")


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise CelError(f"no such overload: bool({kind_of(value)})")


def _is(make: Callable[[object], object]) -> Callable[[object], bool]:
    def made(value: object) -> bool:
        try:
            make(value)
        except CelError:
            return False
        return True

    return made


_FUNCTIONS: Mapping[str, Callable[[object], object]] = {
    "size": _size,
    "int": _int,
    "double": _double,
    "string": _string,
    "bool": _bool,
    "dyn": lambda value: value,
    "type": kind_of,
    "quantity": quantity,
    "isQuantity": _is(quantity),
    "semver": semver,
    "isSemver": _is(semver),
    "optional.of": lambda value: Optional(present=True, value=value),
}


def _matches(text: str, pattern: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.search(*(each.encode(errors="replace") for each in (pattern, text)), options) is not None
    except re2.error as error:
        raise CelError(f"invalid regular expression {pattern!r}: {error.args[0].decode()}") from error


def _compare(one: Quantity | Semver, other: object) -> int:
    if type(one) is not type(other):
        raise TypeError
    return 0 if one == other else -1 if one < other else 1  # type: ignore[operator]


def _as_integer(value: Quantity) -> int:
    if not value.whole:
        raise CelError("cannot convert value to integer")
    return int(checked(value.billionths // NANO))


def _amount(other: object) -> int:
    if isinstance(other, Quantity):
        return other.billionths
    if isinstance(other, int) and not isinstance(other, bool):
        return other * NANO
    raise TypeError


def _needs_text(method: Callable[[str, str], object]) -> Callable[[str, object], object]:
    def call(text: str, other: object) -> object:
        if not isinstance(other, str):
            raise TypeError
        return method(text, other)

    return call


_METHODS: Sequence[tuple[type | tuple[type, ...], Mapping[str, Callable[..., object]]]] = (
    (
        str,
        {
            "size": _size,
            "startsWith": _needs_text(lambda text, other: text.startswith(other)),
            "endsWith": _needs_text(lambda text, other: text.endswith(other)),
            "contains": _needs_text(lambda text, other: other in text),
            "matches": _needs_text(_matches),
            "lowerAscii": lambda text: text.lower(),
            "upperAscii": lambda text: text.upper(),
            "trim": lambda text: text.strip(),
            "indexOf": _needs_text(lambda text, other: text.find(other)),
            "split": _needs_text(lambda text, other: text.split(other) if other else list(text)),
            "replace": lambda text, old, new: text.replace(old, new),
        },
    ),
    (
        Optional,
        {
            "hasValue": lambda optional: optional.present,
            "value": lambda optional: _value_of(optional),
            "orValue": lambda optional, other: optional.value if optional.present else other,
            "or": lambda optional, other: optional if optional.present else other,
        },
    ),
    (
        Quantity,
        {
            "compareTo": _compare,
            "isGreaterThan": lambda one, other: _compare(one, other) > 0,
            "isLessThan": lambda one, other: _compare(one, other) < 0,
            "isInteger": lambda one: one.whole,
            "asInteger": _as_integer,
            "asApproximateFloat": lambda one: one.billionths / NANO,
            "sign": lambda one: (one.billionths > 0) - (one.billionths < 0),
            "add": lambda one, other: Quantity(one.billionths + _amount(other)),
            "sub": lambda one, other: Quantity(one.billionths - _amount(other)),
        },
    ),
    (
        Semver,
        {
            "compareTo": _compare,
            "isGreaterThan": lambda one, other: _compare(one, other) > 0,
            "isLessThan": lambda one, other: _compare(one, other) < 0,
            "major": lambda one: one.major,
            "minor": lambda one: one.minor,
            "patch": lambda one: one.patch,
        },
    ),
    (
        (list, tuple, Mapping),
        {
            "size": _size,
            "join": lambda items, separator="": separator.join(items),
            "indexOf": lambda items, item: next((at for at, each in enumerate(items) if equal(each, item)), -1),
        },
    ),
)


def _value_of(optional: Optional) -> object:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value
