"""Text after a format, as Go's `fmt.Sprintf` writes it: the verbs v, s, q, d, x, X, t, f, e and g."""

import json
import re
from collections.abc import Sequence

from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import Length, PointInTime, SpanId, TraceId

_VERB = re.compile(r"%([-+# 0]*)(\d{1,4})?(?:\.(\d{0,3}))?(.?)", re.DOTALL)
_MOST_CHARACTERS = 2**20
_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string", bytes: "[]uint8"}


def go_format(form: str, values: Sequence[object]) -> str:
    """Return the values in the format. What does not fit its verb is written as Go writes it: `%!d(string=x)`.

    Raises:
        EvaluationError: the text would be too long.
    """
    used = 0

    def written(verb: re.Match[str]) -> str:
        nonlocal used
        flags, width, precision, letter = verb.groups()
        if letter == "%":
            return "%"
        if not letter:
            return "%!(NOVERB)"
        used += 1
        if used > len(values):
            return f"%!{letter}(MISSING)"
        return _padded(_formatted(values[used - 1], letter, flags, precision), flags, width, values[used - 1])

    text = _VERB.sub(written, form)
    if used < len(values):
        text += f"%!(EXTRA {', '.join(map(_typed, values[used:]))})"
    if len(text) > _MOST_CHARACTERS:
        raise EvaluationError(f"a text of more than {_MOST_CHARACTERS} characters")
    return text


def _padded(text: str, flags: str, width: str | None, value: object) -> str:
    if width is None:
        return text
    if "-" in flags:
        return text.ljust(int(width))
    if "0" in flags and type(value) in (int, float):
        return text.zfill(int(width))
    return text.rjust(int(width))


def _formatted(value: object, letter: str, flags: str, precision: str | None) -> str:
    sign = "+" if "+" in flags else ""
    if letter == "v":
        return _plain(value, sign)
    match value:
        case bool() if letter == "t":
            return _plain(value)
        case bool():
            pass
        case int() if letter == "d":
            return f"{value:{sign}d}"
        case int() if letter in "xX":
            return f"{value:{'#' if '#' in flags else ''}{letter}}"
        case float() if letter in "feg":
            return f"{value:{sign}.{precision or 0}{letter}}" if precision is not None else _double(value, letter, sign)
        case str() | bytes() if letter in "sxXq":
            return _texts(value, letter, precision)
    return f"%!{letter}({_typed(value)})"


def _texts(value: str | bytes, letter: str, precision: str | None) -> str:
    if letter in "xX":
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        return raw.hex() if letter == "x" else raw.hex().upper()
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    cut = text if precision is None else text[: int(precision or 0)]
    return json.dumps(cut, ensure_ascii=False) if letter == "q" else cut


def _double(value: float, letter: str, sign: str) -> str:
    return _plain(value, sign) if letter == "g" else f"{value:{sign}.6{letter}}"


def _plain(value: object, sign: str = "") -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:{sign}d}"
        case float():
            return _shortest(value, sign)
        case list():
            return f"[{' '.join(map(_plain, value))}]"
        case dict():
            return f"map[{' '.join(f'{key}:{_plain(item)}' for key, item in sorted(value.items()))}]"
        case bytes():
            return f"[{' '.join(map(str, value))}]"
        case TraceId() | SpanId():
            return value.raw.hex()
        case PointInTime() | Length():
            raise EvaluationError("a time is formatted by FormatTime, a duration by its number")
    return str(value)


def _shortest(value: float, sign: str) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < 1e21:
        return f"{value:{sign}.0f}"
    return f"{sign if value >= 0 else ''}{value!r}"


def _typed(value: object) -> str:
    return f"{_TYPES[type(value)]}={_plain(value)}" if type(value) in _TYPES else _plain(value)
