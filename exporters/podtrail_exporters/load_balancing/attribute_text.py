"""Attribute values as contrib's exporter writes them into a routing key: as `pcommon.Value.AsString` does."""

import json
import math
from base64 import b64encode
from decimal import Decimal

from podtrail.otlp import Value

_PLAIN = (1e-6, 1e21)
"""From the first to below the second a number is written without an exponent."""
_ESCAPED = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})


class _NoJson(ValueError):
    """Something in a list or a map that JSON does not know."""


def attribute_text(value: Value) -> str:
    """Return a value as text, the same for the same value."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case float():
            return _number(value) if math.isfinite(value) else _not_finite(value)
        case bytes():
            return b64encode(value).decode()
    try:
        return _json(value)
    except _NoJson:
        return ""


def _json(value: Value) -> str:
    match value:
        case None:
            return "null"
        case str():
            return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)
        case float() if not math.isfinite(value):
            raise _NoJson
        case bytes():
            return f'"{b64encode(value).decode()}"'
        case list():
            return f"[{','.join(map(_json, value))}]"
        case dict():
            return f"{{{','.join(f'{_json(key)}:{_json(value[key])}' for key in sorted(value))}}}"
    return attribute_text(value)


def _number(value: float) -> str:
    exact = Decimal(repr(value))
    if value and not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return format(exact.normalize(), "e")
    return format(exact, "f").removesuffix(".0")


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
