"""Functions that answer yes or no."""

import ipaddress
from collections.abc import Callable, Mapping
from functools import lru_cache

from podtrail.config.re2 import finder
from podtrail.otlp.remembering import remembering
from podtrail_processors.ottl.functions.parameters import (
    Function,
    Parameter,
    a_list,
    anything,
    text,
    text_like,
)
from podtrail_processors.ottl.values.compare import equal
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import Items, Length, SpanId, TraceId, kind_of


@remembering(64)
def _finder(pattern: str) -> Callable[[str], bool]:
    return finder([pattern])


def is_match(target: str | None, pattern: str) -> bool:
    """Return whether a regular expression (RE2) is found in a value as text; never in nil.

    Raises:
        EvaluationError: the expression is none that RE2 knows.
    """
    if target is None:
        return False
    try:
        return _finder(pattern)(target)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _check_pattern(constants: Mapping[str, object]) -> None:
    pattern = constants.get("pattern")
    if isinstance(pattern, str):
        _finder(pattern)


def _contains_value(target: list[object], item: object) -> bool:
    return any(equal(one, item) for one in target)


def _is_empty(value: object) -> bool:
    match value:
        case TraceId() | SpanId():
            return not any(value.raw)
        case Items():
            return not value.count
        case Length():
            return not value.nanoseconds
        case bool() | int() | float() | str() | bytes() | list() | dict():
            return not value
    return value is None


def _is_in_networks(target: str, networks: list[object]) -> bool:
    try:
        address = ipaddress.ip_address(target)
    except ValueError:
        return False
    return any(address in _network(network) for network in networks)


@lru_cache(maxsize=256)
def _network(written: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    if isinstance(written, str) and "/" in written:
        try:
            return ipaddress.ip_network(written, strict=False)
        except ValueError:
            pass
    raise EvaluationError(f"{written!r} is no network")


def _check_networks(constants: Mapping[str, object]) -> None:
    networks = constants.get("networks")
    for network in networks if isinstance(networks, list) else []:
        try:
            _network(network)
        except EvaluationError as error:
            raise ValueError(str(error)) from None


def _is_valid_luhn(value: object) -> bool:
    digits = str(value) if type(value) is int else value
    if not isinstance(digits, str) or not digits.isdecimal() or not digits.isascii():
        raise EvaluationError(f"expected digits but got {kind_of(value)}")
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(map(int, digits[::-2]))) % 10 == 0


_VALUE = (Parameter("value", anything),)

FUNCTIONS = (
    Function("ContainsValue", (Parameter("target", a_list), Parameter("item", anything)), _contains_value),
    Function("HasPrefix", (Parameter("value", text), Parameter("prefix", text)), str.startswith),
    Function("HasSuffix", (Parameter("value", text), Parameter("suffix", text)), str.endswith),
    Function("IsBool", _VALUE, lambda value: type(value) is bool),
    Function("IsDouble", _VALUE, lambda value: type(value) is float),
    Function("IsEmpty", (Parameter("target", anything),), _is_empty),
    Function("IsInCIDR", (Parameter("target", text), Parameter("networks", a_list)), _is_in_networks, _check_networks),
    Function("IsInt", _VALUE, lambda value: type(value) is int),
    Function("IsList", _VALUE, lambda value: isinstance(value, list | Items)),
    Function("IsMap", _VALUE, lambda value: type(value) is dict),
    Function("IsMatch", (Parameter("target", text_like), Parameter("pattern", text)), is_match, _check_pattern),
    Function("IsString", _VALUE, lambda value: type(value) is str),
    Function("IsValidLuhn", _VALUE, _is_valid_luhn),
)
"""Functions that answer yes or no."""
