"""Zipkin's JSON v2, as its API takes and gives it: lists of spans, or lists of such lists.

Names and meanings as in OpenTelemetry's mapping to and from Zipkin: a tag `error` is a failure, its value says what
failed; `otel.status_code`, `otel.scope.name`; the endpoints as `service.name`, `peer.service` and addresses.
"""

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from podtrail.recording.foreign.fields import (
    ERROR,
    KINDS,
    SCOPE_NAMES,
    SCOPE_VERSIONS,
    STATUS,
    Json,
    attributes,
    by_scope,
    first,
    items,
    nanoseconds,
    request,
    span_id,
    trace_id,
)


def is_zipkin(element: Mapping[str, Any]) -> bool:
    """Say whether an object is a span of Zipkin's."""
    return "traceId" in element and "id" in element


def zipkin_request(spans: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return spans as a request in OTLP JSON, neighbours of one service side by side."""
    found = [(_resource(span), _span(span)) for span in spans]
    return {
        "resourceSpans": [
            request(resource, by_scope([span for _, span in some])) for resource, some in groupby(found, itemgetter(0))
        ]
    }


def _resource(span: Json) -> Json:
    name = _endpoint(span, "localEndpoint").get("serviceName")
    return {"service.name": name} if name else {}


def _endpoint(span: Json, key: str) -> Json:
    endpoint = span.get(key)
    return endpoint if isinstance(endpoint, dict) else {}


def _span(span: Json) -> tuple[tuple[str, str], Json]:
    given = span.get("tags")
    tags = dict(given) if isinstance(given, dict) else {}
    scope = first(tags, SCOPE_NAMES), first(tags, SCOPE_VERSIONS)
    status = _status(tags)
    trace_state = first(tags, ("w3c.tracestate",))
    for side, endpoint in (("host", _endpoint(span, "localEndpoint")), ("peer", _endpoint(span, "remoteEndpoint"))):
        tags.update(_address(side, endpoint))
    if span.get("shared"):
        tags["zipkin.shared"] = True
    start = nanoseconds(span.get("timestamp"))
    return scope, {
        "traceId": trace_id(span.get("traceId")),
        "spanId": span_id(span.get("id")),
        "parentSpanId": span_id(span["parentId"]) if span.get("parentId") else "",
        "traceState": trace_state,
        "name": str(span.get("name") or ""),
        "kind": KINDS.get(str(span.get("kind", "internal")).lower(), 0),
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + nanoseconds(span.get("duration")) if start else 0),
        "attributes": attributes(tags),
        "events": [
            {"timeUnixNano": str(nanoseconds(event.get("timestamp"))), "name": str(event.get("value") or "")}
            for event in items(span.get("annotations"))
        ],
        "status": status,
    }


def _status(tags: dict[str, Any]) -> Json:
    message = first(tags, ("otel.status_description",))
    code = STATUS.get(str(tags.pop("otel.status_code", "")).upper(), 0)
    error = tags.pop("error", None)
    if error is None or code == STATUS["OK"]:
        return {"code": code, "message": message}
    said = "" if error in (True, "true", "") else str(error)
    return {"code": ERROR, "message": message or said}


def _address(side: str, endpoint: Json) -> Json:
    found = {
        f"net.{side}.ip": endpoint.get("ipv4") or endpoint.get("ipv6"),
        f"net.{side}.port": endpoint.get("port"),
        "peer.service": endpoint.get("serviceName") if side == "peer" else None,
    }
    return {key: value for key, value in found.items() if value}
