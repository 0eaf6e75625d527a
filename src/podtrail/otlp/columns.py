"""Reading a few fields of many spans as columns: what a decision over a whole trace needs, without an object a span.

Protobuf merges a singular message that stands more than once: repeated fields of the parts are put together. So a
type in which `spans` is singular and a span's fields are repeated reads all spans of a `ScopeSpans` into one message
that holds a list a field. About 0.1 us a span and 0.03 for each field that is looked at.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, Protocol, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.lite import SCOPE_SPANS, SPAN

_FIELD = descriptor_pb2.FieldDescriptorProto
_STATUS: Descriptor = trace_pb2.Status.DESCRIPTOR
_PACKAGE = "podtrail.columns"


class StatusColumns(Protocol):
    """What spans say about how they ended."""

    code: Sequence[int]
    """Of spans whose status is not unset: 1 ok, 2 error."""


class SpanColumns(Protocol):
    """A column a field, under OTLP's names, in the order of the spans.

    A span that lacks a field (or has its default: 0, "") is left out of the column: only where a column is as long as
    there are spans does its n-th value belong to the n-th span. Fields that were not asked for raise AttributeError.
    """

    trace_state: Sequence[bytes]
    parent_span_id: Sequence[bytes]
    attributes: Sequence[bytes]
    """KeyValue messages of all spans."""
    events: Sequence[bytes]
    """Event messages of all spans."""
    links: Sequence[bytes]
    """Link messages of all spans."""
    flags: Sequence[int]
    kind: Sequence[int]
    name: Sequence[bytes]
    start_time_unix_nano: Sequence[int]
    end_time_unix_nano: Sequence[int]
    status: StatusColumns


def column_reader(fields: Collection[str]) -> Callable[[bytes], SpanColumns]:
    """Return a function from a group's `spans` (or several joined) to the columns of these fields.

    Raises:
        KeyError: a name is none of `SpanColumns`.
    """
    parse = _column_type(frozenset(fields)).FromString

    def read(spans: bytes) -> SpanColumns:
        columns: SpanColumns = parse(spans).spans
        return columns

    return read


@cache
def _column_type(fields: frozenset[str]) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="podtrail/columns.proto", package=_PACKAGE, syntax="proto3")
    whole = file.message_type.add(name="Whole")
    _add_message(whole, SCOPE_SPANS.fields_by_name["spans"].number, "spans", "Spans")
    spans = file.message_type.add(name="Spans")
    for name in sorted(fields):
        number = SPAN.fields_by_name[name].number
        if name == "status":
            _add_message(spans, number, name, "Status")
        else:
            _add_column(spans, SPAN, name)
    status = file.message_type.add(name="Status")
    _add_column(status, _STATUS, "code")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Whole"))


def _add_message(to: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str) -> None:
    to.field.add(
        name=name,
        number=number,
        label=_FIELD.LABEL_OPTIONAL,
        type=_FIELD.TYPE_MESSAGE,
        type_name=f".{_PACKAGE}.{kind}",
    )


def _add_column(to: descriptor_pb2.DescriptorProto, message: Descriptor, name: str) -> None:
    upstream = message.fields_by_name[name]
    kind = cast("Any", upstream.type)
    if kind == _FIELD.TYPE_ENUM:
        kind = _FIELD.TYPE_INT32
    elif kind in (_FIELD.TYPE_STRING, _FIELD.TYPE_MESSAGE):
        kind = _FIELD.TYPE_BYTES
    to.field.add(name=name, number=upstream.number, label=_FIELD.LABEL_REPEATED, type=kind)
