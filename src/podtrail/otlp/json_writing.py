"""Spans to OTLP JSON: ids in hex, enums as integers, 64-bit integers as strings, nothing that is at its default.

JSON has no place for fields that opentelemetry-proto does not know: they are left out.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.group import Group
from podtrail.otlp.json_values import scalar_writer


def write_json_request(groups: Iterable[Group]) -> bytes:
    """Return groups as one ExportTraceServiceRequest in OTLP JSON: a single line of ASCII, without a line feed.

    Neighbours with equal headers share one ResourceSpans or ScopeSpans, as in `write_request`.
    """
    written: list[dict[str, Any]] = []
    for resource, of_resource in groupby(groups, itemgetter(0)):
        resource_spans = _to_json(trace_pb2.ResourceSpans.FromString(resource))
        resource_spans["scopeSpans"] = [
            _to_json(trace_pb2.ScopeSpans.FromString(scope + b"".join([group[3] for group in of_scope])))
            for scope, of_scope in groupby(of_resource, itemgetter(1))
        ]
        written.append(resource_spans)
    return json.dumps({"resourceSpans": written} if written else {}, separators=(",", ":"), allow_nan=False).encode()


def span_to_json(raw_span: bytes) -> dict[str, Any]:
    """Return the mapping that OTLP JSON has for a span (bytes without frame).

    Raises:
        DecodeError: the bytes are no span.
    """
    return _to_json(trace_pb2.Span.FromString(raw_span))


def _to_json(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for field, value in message.ListFields():
        name, write, repeated = _plan(field)
        if write is not None:
            value = [write(inner) for inner in value] if repeated else write(value)
        elif repeated:
            value = list(value)
        written[name] = value
    return written


@cache
def _plan(field: Field) -> tuple[str, Callable[[Any], object] | None, bool]:
    """Return a field's key, what writes one value of it (None: it is JSON already), and whether it is repeated."""
    write = _to_json if field.type == Field.TYPE_MESSAGE else scalar_writer(field)
    return field.json_name, write, field.is_repeated
