"""Is a request sound? A parse that checks all that upstream's parser checks and makes next to nothing of it.

In a type that follows upstream's field by field, but in which every field is singular, what stands repeatedly on the
wire is merged: UTF-8, wire types and depth are checked everywhere, but there is one object a level instead of one a
span, attribute and value. So a request of millions of empty attributes costs no more memory than its bytes. Only the
times of spans are lists.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor

from podtrail.otlp.lite import REQUEST, SPAN

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "podtrail.strict"
_LISTS = frozenset({"start_time_unix_nano", "end_time_unix_nano"})


def _strict_type() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="podtrail/strict.proto", package=_PACKAGE, syntax="proto3")
    _describe(file, REQUEST)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{_name_of(REQUEST)}"))


def _describe(file: descriptor_pb2.FileDescriptorProto, message: Descriptor) -> None:
    name = _name_of(message)
    if any(described.name == name for described in file.message_type):
        return
    described = file.message_type.add(name=name)
    for upstream in message.fields:
        is_list = message is SPAN and upstream.name in _LISTS
        field = described.field.add(
            name=upstream.name,
            number=upstream.number,
            label=_FIELD.LABEL_REPEATED if is_list else _FIELD.LABEL_OPTIONAL,
            type=cast("Any", upstream.type),
        )
        if upstream.type == _FIELD.TYPE_ENUM:
            field.type = _FIELD.TYPE_INT32
        elif upstream.message_type is not None:
            field.type_name = f".{_PACKAGE}.{_name_of(upstream.message_type)}"
            _describe(file, upstream.message_type)


def _name_of(message: Descriptor) -> str:
    return message.full_name.replace(".", "_")


_parse = _strict_type().FromString


class Times(NamedTuple):
    """The times of all spans of a request, in order; a time of 0 is left out."""

    starts: Sequence[int]
    ends: Sequence[int]


def check(request: bytes) -> Times:
    """Return the times in a serialized ExportTraceServiceRequest. DecodeError when upstream's parser refuses it too."""
    spans = _parse(request).resource_spans.scope_spans.spans
    return Times(spans.start_time_unix_nano[:], spans.end_time_unix_nano[:])
