"""Finished spans as the bytes of an OTLP request.

The bytes are joined here, not by protobuf's classes, whose messages cost several times as much to fill; texts, which
repeat, are turned into bytes once and remembered. Numbers are those of opentelemetry/proto/trace/v1/trace.proto.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.proto.trace.v1.trace_pb2 import Status as StatusMessage
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from .recorded import Origin, RecordedSpan

_KINDS = {
    SpanKind.INTERNAL: Message.SPAN_KIND_INTERNAL,
    SpanKind.SERVER: Message.SPAN_KIND_SERVER,
    SpanKind.CLIENT: Message.SPAN_KIND_CLIENT,
    SpanKind.PRODUCER: Message.SPAN_KIND_PRODUCER,
    SpanKind.CONSUMER: Message.SPAN_KIND_CONSUMER,
}
_STATUS_CODES = {StatusCode.OK: StatusMessage.STATUS_CODE_OK, StatusCode.ERROR: StatusMessage.STATUS_CODE_ERROR}
_UNSET = b"\x7a\x00"
_LOCAL = b"\x85\x01" + (0x100).to_bytes(4, "little")
"""A span's flags, that say of its parent that it is known whether it is remote: it is not."""

_TIMES = Struct("<BQBQ").pack
_TIME = Struct("<BQ").pack
_DOUBLE = Struct("<Bd").pack
_IDS = Struct(">BB16sBBQ").pack
_PARENT = Struct(">BBQ").pack
_LINK_FLAGS = Struct("<BI").pack
_OF_SPAN, _OF_EVENT, _OF_LINK = b"\x4a", b"\x1a", b"\x22"
"""How the field `attributes` begins."""


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
    resource, scope = _surroundings(spans[0].origin)
    whole = scope + b"".join([_field(b"\x12", _span(span)) for span in spans])
    return _field(b"\x0a", resource + _field(b"\x12", whole))


@lru_cache(maxsize=16)
def _surroundings(origin: Origin) -> tuple[bytes, bytes]:
    """`ResourceSpans` without scopes, and `ScopeSpans` without spans."""
    context = SpanContext(1, 1, is_remote=False)
    any_span = ReadableSpan("", context, resource=origin.resource, instrumentation_scope=origin.scope)
    [resource] = encode_spans([any_span]).resource_spans
    [scope] = resource.scope_spans
    del scope.spans[:]
    of_scope = scope.SerializeToString()
    del resource.scope_spans[:]
    return resource.SerializeToString(), of_scope


def _span(span: RecordedSpan) -> bytes:
    parent, status, end = span.parent_span, span.status, span.end_time
    assert end is not None
    parts = [
        _IDS(0x0A, 16, span.trace_id.to_bytes(16, "big"), 0x12, 8, span.span_id),
        b"" if parent is None else _PARENT(0x22, 8, parent.span_id),
        _text(b"\x2a", span.name),
        bytes((0x30, _KINDS[span.kind])),
        _TIMES(0x39, span.start_time or 0, 0x41, end),
        _UNSET if status.status_code is StatusCode.UNSET else _status(status),
        _LOCAL,
    ]
    told = span.told
    if told:
        _attributes(_OF_SPAN, told[0] if len(told) == 1 else span.attributes, parts)
    for name, timestamp, attributes in span.happened:
        event = [_TIME(0x09, timestamp), _text(b"\x12", name)]
        _attributes(_OF_EVENT, attributes, event)
        parts.append(_field(b"\x5a", b"".join(event)))
    parts += [_field(b"\x6a", _link(link)) for link in span.links]
    return b"".join(parts)


def _link(link: Link) -> bytes:
    context = link.context
    parts = [
        _IDS(0x0A, 16, context.trace_id.to_bytes(16, "big"), 0x12, 8, context.span_id),
        _LINK_FLAGS(0x35, 0x300 if context.is_remote else 0x100),
    ]
    _attributes(_OF_LINK, link.attributes or {}, parts)
    return b"".join(parts)


def _status(status: Status) -> bytes:
    message = _text(b"\x12", status.description) if status.description else b""
    return _field(b"\x7a", message + bytes((0x18, _STATUS_CODES[status.status_code])))


def _attributes(field: bytes, attributes: Mapping[str, AttributeValue], parts: list[bytes]) -> None:
    for key, value in attributes.items():
        if isinstance(value, str):
            parts.append(_remembered(field, key, value))
        else:
            parts.append(_field(field, _pair(key, value)))


@lru_cache(maxsize=4096)
def _remembered(field: bytes, key: str, value: str) -> bytes:
    return _field(field, _pair(key, value))


def _value(value: Any) -> bytes:
    """An `AnyValue`."""
    if isinstance(value, str):
        return _text(b"\x0a", value)
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(value, float):
        return _DOUBLE(0x21, value)
    if isinstance(value, bytes):
        return _field(b"\x3a", value)
    if isinstance(value, Mapping):
        return _field(b"\x32", b"".join([_field(b"\x0a", _pair(key, each)) for key, each in value.items()]))
    if isinstance(value, Sequence):
        return _field(b"\x2a", b"".join([_field(b"\x0a", _value(each)) for each in value]))
    return b"" if value is None else _text(b"\x0a", str(value))  # what a plugin tells must not cost others' spans


def _pair(key: str, value: Any) -> bytes:
    """A `KeyValue`."""
    return _text(b"\x0a", key) + _field(b"\x12", _value(value))


@lru_cache(maxsize=1024)
def _text(field: bytes, text: str) -> bytes:
    return _field(field, text.encode(errors="replace"))


def _field(field: bytes, content: bytes) -> bytes:
    """A field of bytes: what it begins with, the length, the bytes."""
    length = len(content)
    return field + (_SHORT[length] if length < 128 else _varint(length)) + content


def _varint(number: int) -> bytes:
    if number < 128:
        return _SHORT[number]
    content = bytearray()
    while number >= 128:
        content.append(number & 127 | 128)
        number >>= 7
    content.append(number)
    return bytes(content)


_SHORT = [bytes((number,)) for number in range(128)]
