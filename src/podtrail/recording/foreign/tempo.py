"""Tempo's JSON, as its API answers it: OTLP whose lists have other names and whose ids are in base64.

Protobuf's own mapping to JSON writes bytes so; OTLP's has hex digits. A trace id has 24 characters in base64 and 32 in
hex, so that each is told from the other.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from podtrail.recording.foreign.fields import Json, items

_BYTES: Final = {"traceId": 16, "spanId": 8, "parentSpanId": 8, "trace_id": 16, "span_id": 8, "parent_span_id": 8}
_URL_SAFE: Final = str.maketrans("-_", "+/")
_RESOURCES: Final = ("batches", "resourceSpans", "resource_spans")
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")


def is_tempo(document: Mapping[str, Any]) -> bool:
    """Say whether an object is a request, or an answer of Tempo's (`batches`, or `trace` around `resourceSpans`)."""
    if any(isinstance(document.get(key), list) for key in _RESOURCES[1:]):
        return True
    trace = document.get("trace", document)
    found = [trace.get(key) for key in _RESOURCES] if isinstance(trace, dict) else []
    return any(isinstance(one, list) and any(map(is_resource_spans, items(one))) for one in found)


def tempo_request(document: Mapping[str, Any]) -> Json:
    """Return an answer as a request in OTLP JSON."""
    trace = document.get("trace")
    trace = trace if isinstance(trace, dict) else document
    return {"resourceSpans": [resource_spans(one) for key in _RESOURCES for one in items(trace.get(key))]}


def is_resource_spans(element: Mapping[str, Any]) -> bool:
    """Say whether an object is a resource with its spans."""
    return any(key in element for key in _SCOPES)


def resource_spans(element: Json) -> Json:
    """Return a resource with its spans in OTLP's names, ids in hex digits."""
    scopes = [_scope(scope) for key in _SCOPES for scope in items(element.get(key))]
    return {**{key: value for key, value in element.items() if key not in _SCOPES}, "scopeSpans": scopes}


def _scope(scope: Json) -> Json:
    renamed = {"scope" if key == "instrumentationLibrary" else key: value for key, value in scope.items()}
    spans = renamed.get("spans")
    return {**renamed, "spans": [_span(one) for one in spans]} if isinstance(spans, list) else renamed


def _span(span: object) -> object:
    if not isinstance(span, dict):
        return span
    links = span.get("links")
    read = _hex(span)
    return {**read, "links": [_hex(one) for one in links]} if isinstance(links, list) else read


def _hex(ids: object) -> Any:
    if not isinstance(ids, dict):
        return ids
    return {key: _digits(value, _BYTES[key]) if key in _BYTES else value for key, value in ids.items()}


def _digits(value: object, length: int) -> object:
    """Return base64 of so many bytes as hex digits, anything else as it is."""
    if not isinstance(value, str) or len(value) != 4 * -(-length // 3):
        return value
    try:
        return base64.b64decode(value.translate(_URL_SAFE), validate=True).hex()
    except (binascii.Error, ValueError):
        return value
