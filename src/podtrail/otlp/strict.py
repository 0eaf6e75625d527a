"""Checks that a request decodes: a parse that checks all that upstream's parser does and makes next to nothing of it.

In a type that follows upstream's field by field, but in which every field is singular, what stands repeatedly on the
wire is merged: UTF-8, wire types and depth are checked everywhere, but there is one object a level instead of one a
span, attribute and value. So a request of millions of empty attributes costs no more memory than its bytes. Only the
ids, times and statuses of spans are lists: of them it takes how many there are, and the times.
"""

from collections.abc import Container
from typing import Any, NamedTuple, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from podtrail.otlp.lite import REQUEST, SPAN

_FIELD = descriptor_pb2.FieldDescriptorProto
_IDS = ("trace_id", "span_id")
_TIMES = ("start_time_unix_nano", "end_time_unix_nano")


def _strict_type(package: str, *, lists: Container[str] = (), raw: Container[str] = ()) -> Any:
    """Return the type. Of a span, `lists` stay repeated, and `raw` is read as bytes."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    _describe(file, REQUEST, lists, raw)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{_name_of(REQUEST)}"))


def _describe(
    file: descriptor_pb2.FileDescriptorProto, message: Descriptor, lists: Container[str], raw: Container[str]
) -> None:
    name = _name_of(message)
    if any(described.name == name for described in file.message_type):
        return
    described = file.message_type.add(name=name)
    for upstream in message.fields:
        is_list = message is SPAN and upstream.name in lists
        field = described.field.add(
            name=upstream.name,
            number=upstream.number,
            label=_FIELD.LABEL_REPEATED if is_list else _FIELD.LABEL_OPTIONAL,
            type=cast("Any", upstream.type),
        )
        if message is SPAN and upstream.name in raw:
            field.type = _FIELD.TYPE_BYTES
        elif upstream.type == _FIELD.TYPE_ENUM:
            field.type = _FIELD.TYPE_INT32
        elif upstream.message_type is not None:
            field.type_name = f".{file.package}.{_name_of(upstream.message_type)}"
            _describe(file, upstream.message_type, lists, raw)


def _name_of(message: Descriptor) -> str:
    return message.full_name.replace(".", "_")


_parse = _strict_type("podtrail.strict", lists=(*_IDS, *_TIMES, "status"), raw=("status",)).FromString
# Lists of numbers are also read from bytes, which upstream passes over where one number belongs: bytes that are no list
# of times are no reason to refuse what it takes.
_parse_without_times = _strict_type("podtrail.strict_untimed", lists=(*_IDS, "status"), raw=("status",)).FromString
# What is left of a request after that, read again: statuses that are checked, and times as they lie side by side.
_parse_rest = _strict_type("podtrail.strict_rest", raw=_TIMES).FromString


NO_SPAN_ID = b"\x12\x08" + bytes(8)
"""A span's id of zeros, as it is written."""


class RequestFacts(NamedTuple):
    """What is known of a request's spans without having looked at any alone."""

    trace_ids: int
    """How many trace ids there are in it."""
    span_ids: int
    no_span_id: bool
    """Whether one of them may be of zeros."""
    statuses_differ: bool
    """Whether there are several statuses that are not all empty, so that one could stand twice and matter."""
    starts: bytes
    """The start times, in order, each 8 bytes, little-endian; one of 0 is left out, and all are where one is bytes."""
    ends: bytes


def check(request: bytes) -> RequestFacts:
    """Return what is told in a serialized ExportTraceServiceRequest.

    Raises:
        DecodeError: upstream's parser refuses it.
    """
    try:
        merged = _parse(request)
    except DecodeError:
        merged = _parse_without_times(request)
        merged.resource_spans.scope_spans.spans.ClearField("start_time_unix_nano")
        merged.resource_spans.scope_spans.spans.ClearField("end_time_unix_nano")
    spans = merged.resource_spans.scope_spans.spans
    # Written again it is little more than the lists. Times as packed bytes spare an int for each (500 instructions a
    # span), and statuses are checked here, at their depth, for the first type has them as bytes.
    written = merged.SerializeToString()
    rest = _parse_rest(written).resource_spans.scope_spans.spans
    return RequestFacts(
        len(spans.trace_id),
        len(spans.span_id),
        NO_SPAN_ID in written,
        len(spans.status) > 1 and any(spans.status[:]),
        rest.start_time_unix_nano,
        rest.end_time_unix_nano,
    )
