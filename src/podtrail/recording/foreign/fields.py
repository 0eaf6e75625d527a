"""Values in other programs' JSON as OTLP JSON has them; what is not as it should be OTLP's reader will judge."""

import math
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
"""OTLP's numbers by the names that others have for them, in lower case."""
STATUS = {"OK": 1, "ERROR": 2}
ERROR = 2
SCOPE_NAMES = ("otel.scope.name", "otel.library.name")
SCOPE_VERSIONS = ("otel.scope.version", "otel.library.version")
_INT64 = 1 << 63


def trace_id(value: object) -> str:
    """Return 32 hex digits; shorter ids, of 64 bits or without their zeros, are filled up."""
    return str(value or "").lower().zfill(32)


def span_id(value: object) -> str:
    """Return 16 hex digits, filled up."""
    return str(value or "").lower().zfill(16)


def nanoseconds(microseconds: object) -> int:
    """Return a time or duration given in microseconds, 0 when it is none."""
    if isinstance(microseconds, str) and microseconds.isascii() and microseconds.isdecimal():
        microseconds = int(microseconds) if len(microseconds) < 20 else 0
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float) or not 0 < microseconds < _INT64:
        return 0
    return int(microseconds * 1000) if isinstance(microseconds, float) else microseconds * 1000


def any_value(value: object) -> dict[str, Any]:
    """Return a JSON value as an AnyValue."""
    match value:
        case bool():
            return {"boolValue": value}
        case int() if -_INT64 <= value < _INT64:
            return {"intValue": str(value)}
        case float() if math.isfinite(value):
            return {"doubleValue": value}
        case None:
            return {}
        case list():
            return {"arrayValue": {"values": [any_value(inner) for inner in value]}}
        case dict():
            return {"kvlistValue": {"values": attributes(value)}}
        case _:
            return {"stringValue": str(value)}


def attributes(pairs: Json) -> list[dict[str, Any]]:
    """Return attributes of JSON values."""
    return [{"key": str(key), "value": any_value(value)} for key, value in pairs.items()]


def first(pairs: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Take the first of several keys out of `pairs` that is there; "" when none is."""
    found = [str(pairs.pop(key)) for key in keys if key in pairs]
    return found[0] if found else ""


def items(value: object) -> list[Json]:
    """Return the objects in a list; what is none is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def request(resource: Json, scopes: list[tuple[tuple[str, str], list[Json]]]) -> dict[str, Any]:
    """Return a resource with its spans by scope (name and version) as OTLP JSON has them."""
    return {
        "resource": {"attributes": attributes(resource)},
        "scopeSpans": [
            {"scope": {"name": name, "version": version}, "spans": spans} for (name, version), spans in scopes
        ],
    }


def by_scope(spans: list[tuple[tuple[str, str], Json]]) -> list[tuple[tuple[str, str], list[Json]]]:
    """Return spans by their scopes, in the order in which these first came."""
    found: dict[tuple[str, str], list[Json]] = {}
    for scope, span in spans:
        found.setdefault(scope, []).append(span)
    return list(found.items())
