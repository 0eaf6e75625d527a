"""Finished spans as the bytes of an OTLP request.

What spans repeat (texts mostly do) is serialized once and remembered: bytes joined are messages merged.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from .recorded import Origin, RecordedSpan

_KINDS = {
    SpanKind.INTERNAL: Message.SPAN_KIND_INTERNAL,
    SpanKind.SERVER: Message.SPAN_KIND_SERVER,
    SpanKind.CLIENT: Message.SPAN_KIND_CLIENT,
    SpanKind.PRODUCER: Message.SPAN_KIND_PRODUCER,
    SpanKind.CONSUMER: Message.SPAN_KIND_CONSUMER,
}
_STATUS_CODES = {StatusCode.OK: Status.STATUS_CODE_OK, StatusCode.ERROR: Status.STATUS_CODE_ERROR}
_LOCAL_PARENT = 0x100
"""The flag that says of a span's parent that it is known whether it is remote: it is not."""


def encode(spans: Sequence[ReadableSpan]) -> bytes:
    """A serialized `ExportTraceServiceRequest` with all of `spans`, in order within each resource and scope."""
    recorded: dict[Origin, list[RecordedSpan]] = {}
    others = []
    for span in spans:
        if isinstance(span, RecordedSpan):
            recorded.setdefault(span.origin, []).append(span)
        else:
            others.append(span)
    parts = [_of_one_origin(of_it) for of_it in recorded.values()]
    if others:
        parts.append(encode_spans(others).SerializeToString())
    return b"".join(parts)


def _of_one_origin(spans: Sequence[RecordedSpan]) -> bytes:
    request = encode_spans(spans[:1])
    [resource] = request.resource_spans
    [scope] = resource.scope_spans
    del scope.spans[:]
    for span in spans:
        _add(scope, span)
    return request.SerializeToString()


def _add(scope: ScopeSpans, span: RecordedSpan) -> None:
    parent = span.parent_span
    message = scope.spans.add(
        trace_id=span.trace_id.to_bytes(16, "big"),
        span_id=span.span_id.to_bytes(8, "big"),
        parent_span_id=b"" if parent is None else parent.span_id.to_bytes(8, "big"),
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.start_time,
        end_time_unix_nano=span.end_time,
        flags=_LOCAL_PARENT,
    )
    message.status.SetInParent()
    if span.status.status_code is not StatusCode.UNSET:
        message.status.code = _STATUS_CODES[span.status.status_code]
        message.status.message = span.status.description or ""
    if span.links:
        message.links.extend(encode_spans([span]).resource_spans[0].scope_spans[0].spans[0].links)
    for name, timestamp, attributes in span.happened:
        event = message.events.add(name=name, time_unix_nano=timestamp)
        event.attributes.extend(KeyValue(key=key, value=_value(value)) for key, value in attributes.items())
    known = b""
    for told in span.told if len(span.told) == 1 else (span.attributes,):
        for key, value in told.items():
            if isinstance(value, str | bool):
                known += _remembered(key, value)
            elif isinstance(value, int):
                message.attributes.add(key=key).value.int_value = value
            else:
                message.attributes.add(key=key, value=_value(value))
    message.MergeFromString(known)


@lru_cache(maxsize=4096)
def _remembered(key: str, value: str | bool) -> bytes:
    """The bytes of a span message with nothing but this attribute."""
    return Message(attributes=[KeyValue(key=key, value=_value(value))]).SerializeToString()


def _value(value: Any) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=map(_value, value)))
