"""Message types that read OTLP no deeper than asked, with field numbers taken from opentelemetry-proto's descriptors.

A lite type has a few fields of an upstream message, under the same names and numbers; a field that holds a message is
read as its bytes unless it is given a lite type of its own. What a lite type does not name it keeps as unknown fields,
so that nothing is lost when it is written again. The types follow proto2, in which a field that is there but empty
(`resource {}`) stays there.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

Shape = Mapping[str, "Shape | None"]
"""Field name to the shape of its message, or to None: scalar fields as they are, messages as bytes."""

REQUEST: Descriptor = trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR
RESOURCE_SPANS: Descriptor = trace_pb2.ResourceSpans.DESCRIPTOR
SCOPE_SPANS: Descriptor = trace_pb2.ScopeSpans.DESCRIPTOR
SPAN: Descriptor = trace_pb2.Span.DESCRIPTOR

_FIELD = descriptor_pb2.FieldDescriptorProto


def field_number(message: Descriptor, name: str) -> int:
    """Return the number of a field.

    Raises:
        KeyError: the message has no such field.
    """
    number: int = message.fields_by_name[name].number
    return number


def lite_type(message: Descriptor, shape: Shape, *, text: bool = False) -> type[Message]:
    """Return the message class that reads only `shape` of `message`; strings as bytes, or with `text` as text.

    Raises:
        KeyError: a field name is unknown.
    """
    return _lite_type(message, _freeze(shape), text=text)


def _freeze(shape: Shape) -> tuple[tuple[str, Any], ...]:
    return tuple((name, None if inner is None else _freeze(inner)) for name, inner in sorted(shape.items()))


@cache
def _lite_type(message: Descriptor, shape: tuple[tuple[str, Any], ...], *, text: bool) -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(name="podtrail/lite.proto", package="podtrail.lite", syntax="proto2")
    _describe(file, "Root", message, shape, text=text)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName("podtrail.lite.Root"))
    return found


def _describe(
    file: descriptor_pb2.FileDescriptorProto,
    name: str,
    message: Descriptor,
    shape: tuple[tuple[str, Any], ...],
    *,
    text: bool,
) -> None:
    described = file.message_type.add(name=name)
    for field_name, inner in shape:
        upstream = message.fields_by_name[field_name]
        repeated = upstream.is_repeated
        field = described.field.add(
            name=field_name,
            number=upstream.number,
            label=_FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL,
        )
        if inner is not None and upstream.message_type is not None:
            field.type = _FIELD.TYPE_MESSAGE
            field.type_name = f".podtrail.lite.{name}_{field_name}"
            _describe(file, f"{name}_{field_name}", upstream.message_type, inner, text=text)
        elif text and upstream.type == _FIELD.TYPE_STRING:
            field.type = _FIELD.TYPE_STRING
        elif upstream.type in (_FIELD.TYPE_MESSAGE, _FIELD.TYPE_BYTES, _FIELD.TYPE_STRING):
            # Strings are read as bytes as well: upb would check UTF-8 again, which was done when they came in.
            field.type = _FIELD.TYPE_BYTES
        elif upstream.type == _FIELD.TYPE_ENUM:
            field.type = _FIELD.TYPE_INT32
        else:
            field.type = cast("Any", upstream.type)
