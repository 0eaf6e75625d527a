"""Jaeger's JSON, as its API answers and its page downloads it: a trace with its processes and spans.

Names and meanings as in OpenTelemetry's mapping to and from Jaeger: `span.kind`, `otel.status_code`, `error`,
`otel.scope.name`, references that are not the parent as links, the field `event` of a log as an event's name.
"""

import base64
import binascii
from collections.abc import Mapping
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

_PARENT = "CHILD_OF"
_OF_THE_FORMAT = "internal.span.format"


def is_jaeger(element: Mapping[str, Any]) -> bool:
    """Say whether an object is a trace of Jaeger's."""
    return isinstance(element.get("spans"), list) and ("processes" in element or "traceID" in element)


def jaeger_request(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace as a request in OTLP JSON."""
    processes = trace.get("processes")
    known = processes if isinstance(processes, dict) else {}
    spans: dict[str, list[tuple[tuple[str, str], Json]]] = {}
    resources: dict[str, Json] = {}
    for span in items(trace["spans"]):
        own = span.get("process")
        process = own if isinstance(own, dict) else known.get(str(span.get("processID")))
        resource = _resource(process if isinstance(process, dict) else {})
        key = repr(resource)
        resources[key] = resource
        spans.setdefault(key, []).append(_span(span, trace.get("traceID")))
    return {"resourceSpans": [request(resources[key], by_scope(found)) for key, found in spans.items()]}


def _resource(process: Json) -> Json:
    name = process.get("serviceName")
    return {**({"service.name": name} if name else {}), **_tags(process.get("tags"))}


def _span(span: Json, trace: object) -> tuple[tuple[str, str], Json]:
    tags = _tags(span.get("tags"))
    own_trace = trace_id(span.get("traceID") or trace)
    references = items(span.get("references"))
    parent = _parent(span, references, own_trace)
    scope = first(tags, SCOPE_NAMES), first(tags, SCOPE_VERSIONS)
    kind = KINDS.get(str(tags.get("span.kind")).lower(), 0)
    if kind:
        del tags["span.kind"]
    tags.pop(_OF_THE_FORMAT, None)
    status = _status(tags)
    trace_state = first(tags, ("w3c.tracestate",))
    if span.get("warnings"):
        tags["jaeger.warnings"] = span["warnings"]
    start = nanoseconds(span.get("startTime"))
    flags = span.get("flags")
    return scope, {
        "traceId": own_trace,
        "spanId": span_id(span.get("spanID")),
        "parentSpanId": span_id(parent) if parent else "",
        "traceState": trace_state,
        "flags": flags & 1 if isinstance(flags, int) else 0,
        "name": str(span.get("operationName") or ""),
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + nanoseconds(span.get("duration"))),
        "attributes": attributes(tags),
        "events": [_event(log) for log in items(span.get("logs"))],
        "links": [_link(reference) for reference in references if not _is(reference, parent, own_trace)],
        "status": status,
    }


def _parent(span: Json, references: list[Json], trace: str) -> object:
    """Return the parent's id: of the references within the trace the first to a parent, else to what it follows."""
    within = [reference for reference in references if trace_id(reference.get("traceID") or trace) == trace]
    of = [reference for reference in within if reference.get("refType") == _PARENT]
    return (of or within)[0].get("spanID") if within else span.get("parentSpanID")


def _is(reference: Json, parent: object, trace: str) -> bool:
    return reference.get("spanID") == parent and trace_id(reference.get("traceID") or trace) == trace


def _link(reference: Json) -> Json:
    kind = str(reference.get("refType") or "").lower()
    return {
        "traceId": trace_id(reference.get("traceID")),
        "spanId": span_id(reference.get("spanID")),
        "attributes": attributes({"opentracing.ref_type": kind} if kind else {}),
    }


def _status(tags: dict[str, Any]) -> Json:
    message = first(tags, ("otel.status_description",))
    code = STATUS.get(str(tags.pop("otel.status_code", "")).upper(), 0)
    if not code and tags.get("error") in (True, "true"):
        del tags["error"]
        code = ERROR
    return {"code": code, "message": message}


def _event(log: Json) -> Json:
    fields = _tags(log.get("fields"))
    name = first(fields, ("event",))
    return {
        "timeUnixNano": str(nanoseconds(log.get("timestamp"))),
        "name": name,
        "attributes": attributes(fields),
    }


def _tags(tags: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tag in items(tags):
        found.setdefault(str(tag.get("key")), _value(tag.get("type"), tag.get("value")))
    return found


def _value(kind: object, value: object) -> object:
    """Return a tag's value as its type says; one that is not of its type as it stands."""
    if not isinstance(value, str):
        return float(value) if kind == "float64" and isinstance(value, int) and abs(value) < 1 << 53 else value
    match kind:
        case "bool" if value in ("true", "false"):
            return value == "true"
        case "int64" if value.removeprefix("-").isdecimal() and value.isascii() and len(value) < 20:
            return int(value)
        case "float64":
            return _float(value)
        case "binary":
            return _binary(value)
    return value


def _float(value: str) -> object:
    try:
        return float(value)
    except ValueError:
        return value


def _binary(value: str) -> object:
    """Return what the bytes are as text, if they are; else as they are written."""
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value
