"""Checks that a request decodes: a parse that checks all that upstream's parser does and makes next to nothing of it.

In a type that follows upstream's field by field, but in which every field is singular, what stands repeatedly on the
wire is merged: UTF-8, wire types and depth are checked everywhere, but there is one object a level instead of one a
span, attribute and value. So a request of millions of empty attributes costs no more memory than its bytes. Only the
times of spans are lists.
"""

from collections.abc import Container, Sequence
from typing import Any, NamedTuple, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from podtrail.otlp.lite import REQUEST, SPAN

_FIELD = descriptor_pb2.FieldDescriptorProto


def _strict_type(package: str, *, lists: Container[str] = ()) -> Any:
    """Return the type. Of a span, `lists` stay repeated."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    _describe(file, REQUEST, lists)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{_name_of(REQUEST)}"))


def _describe(file: descriptor_pb2.FileDescriptorProto, message: Descriptor, lists: Container[str]) -> None:
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
        if upstream.type == _FIELD.TYPE_ENUM:
            field.type = _FIELD.TYPE_INT32
        elif upstream.message_type is not None:
            field.type_name = f".{file.package}.{_name_of(upstream.message_type)}"
            _describe(file, upstream.message_type, lists)


def _name_of(message: Descriptor) -> str:
    return message.full_name.replace(".", "_")


_parse = _strict_type("podtrail.strict").FromString
_parse_times = _strict_type("podtrail.strict_times", lists=("start_time_unix_nano", "end_time_unix_nano")).FromString


class Times(NamedTuple):
    """The times of a request's spans as written, in order, Unix nanoseconds; none where one is not a number."""

    starts: Sequence[int]
    ends: Sequence[int]


def check(request: bytes) -> Times:
    """Return the times in a serialized ExportTraceServiceRequest.

    Raises:
        DecodeError: upstream's parser refuses it.
    """
    try:
        spans = _parse_times(request).resource_spans.scope_spans.spans
    except DecodeError:
        _parse(request)  # lists are also read from bytes; upstream passes over bytes where one number belongs
        return Times((), ())
    return Times(spans.start_time_unix_nano[:], spans.end_time_unix_nano[:])
