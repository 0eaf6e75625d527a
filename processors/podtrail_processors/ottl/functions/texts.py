"""Functions on text. Lengths and places in text are counted in bytes of UTF-8, as in Go."""

import re
from collections.abc import Mapping

from podtrail_processors.ottl.functions.go_format import go_format
from podtrail_processors.ottl.functions.parameters import (
    Function,
    Parameter,
    a_list,
    anything,
    boolean,
    integer,
    text,
    text_like,
)
from podtrail_processors.ottl.values.compare import equal
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import Items, kind_of

_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DELIMITERS = re.compile(r"[ _.-]")
_NO_CAMEL = re.compile(r"[^A-Za-z0-9 _.-]")
_WORD_START = re.compile(r"(?:^|(?<=[0-9 _.-]))[a-z]")


def encoded(text: str) -> bytes:
    """Return a text's bytes."""
    return text.encode("utf-8", "surrogateescape")


def length_of(value: object) -> int:
    """Return the length of a text in bytes, or how many there are in a list or map.

    Raises:
        EvaluationError: it is none of these.
    """
    match value:
        case str():
            return len(encoded(value))
        case list() | dict() | bytes():
            return len(value)
        case Items():
            return value.count
    raise EvaluationError(f"{kind_of(value)} has no length")


def _concat(values: list[object], delimiter: str) -> str:
    texts = map(text_like, values)
    return delimiter.join("<nil>" if text is None else text for text in texts)


def _substring(target: str, start: int, length: int, utf8_safe: bool = False) -> str:
    raw = encoded(target)
    if start < 0 or length <= 0 or start + length > len(raw):
        raise EvaluationError(f"{length} bytes from {start} of a string of {len(raw)} bytes")
    part = raw[start : start + length]
    if utf8_safe:
        return part.decode("utf-8", "ignore")
    return part.decode("utf-8", "surrogateescape")


def _index(source: object, value: object) -> int:
    if isinstance(source, str) and isinstance(value, str):
        return encoded(source).find(encoded(value))
    if isinstance(source, list):
        return next((at for at, one in enumerate(source) if equal(one, value)), -1)
    raise EvaluationError(f"{kind_of(value)} can't be looked for in {kind_of(source)}")


def _split(target: str, delimiter: str) -> list[str]:
    return target.split(delimiter) if delimiter else list(target)


def _trim(target: str, replacement: str = " ") -> str:
    return target.strip(replacement) if replacement else target


def snake_case(text: str) -> str:
    """Return `HTTPServerName` as `http_server_name`."""
    return _BOUNDARY.sub("_", _DELIMITERS.sub("_", text.strip())).lower()


def _camel_case(text: str) -> str:
    """Return `my_metric` as `MyMetric`; what is neither letter nor digit is left out."""
    capital = _WORD_START.sub(lambda letter: letter[0].upper(), _NO_CAMEL.sub("", text.strip()))
    return _DELIMITERS.sub("", capital)


_CASES = {"lower": str.lower, "upper": str.upper, "snake": snake_case, "camel": _camel_case}


def _convert_case(target: str, to_case: str) -> str:
    if to_case not in _CASES:
        raise EvaluationError(f"no case {to_case!r}")
    return _CASES[to_case](target)


def _check_case(constants: Mapping[str, object]) -> None:
    case = constants.get("to_case")
    if case is not None and case not in _CASES:
        raise ValueError(f"the case must be one of {', '.join(_CASES)}")


_TARGET = Parameter("target", text)
_VALUE = Parameter("value", text)

FUNCTIONS = (
    Function("Concat", (Parameter("vals", a_list), Parameter("delimiter", text)), _concat),
    Function("ConvertCase", (_TARGET, Parameter("to_case", text)), _convert_case, _check_case),
    Function("Format", (Parameter("format", text), Parameter("vals", a_list)), go_format),
    Function("Index", (Parameter("source", anything), Parameter("value", anything)), _index),
    Function("Len", (Parameter("target", anything),), length_of),
    Function("Split", (_TARGET, Parameter("delimiter", text)), _split),
    Function(
        "Substring",
        (_TARGET, Parameter("start", integer), Parameter("length", integer), Parameter("utf8_safe", boolean, True)),
        _substring,
    ),
    Function("ToCamelCase", (_TARGET,), _camel_case),
    Function("ToLowerCase", (_TARGET,), str.lower),
    Function("ToSnakeCase", (_TARGET,), snake_case),
    Function("ToUpperCase", (_TARGET,), str.upper),
    Function("Trim", (_TARGET, Parameter("replacement", text, True)), _trim),
    Function("TrimPrefix", (_VALUE, Parameter("prefix", text)), str.removeprefix),
    Function("TrimSuffix", (_VALUE, Parameter("suffix", text)), str.removesuffix),
)
"""Functions on text."""
