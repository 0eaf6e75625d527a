"""Spans to OTLP JSON: ids in hex, enums as integers, 64-bit integers as strings, nothing that is at its default.

JSON has no place for fields that opentelemetry-proto does not know: they are left out. The text is made directly:
mappings for `json.dumps` take more than twice the time.
"""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.group import Group
from podtrail.otlp.json_values import scalar_writer, write_string


def write_json_request(groups: Iterable[Group]) -> bytes:
    """Return groups as one ExportTraceServiceRequest in OTLP JSON: a single line of ASCII, without a line feed.

    Neighbours with equal headers share one ResourceSpans or ScopeSpans, as in `write_request`.
    """
    written: list[str] = []
    for resource, of_resource in groupby(groups, itemgetter(0)):
        scopes = [
            _written(trace_pb2.ScopeSpans.FromString(scope + b"".join([group[3] for group in of_scope])))
            for scope, of_scope in groupby(of_resource, itemgetter(1))
        ]
        members = [*_members(trace_pb2.ResourceSpans.FromString(resource)), f'"scopeSpans":[{",".join(scopes)}]']
        written.append(f"{{{','.join(members)}}}")
    return (f'{{"resourceSpans":[{",".join(written)}]}}' if written else "{}").encode()


def _written(message: Message) -> str:
    return f"{{{','.join(_members(message))}}}"


def _members(message: Message) -> list[str]:
    members = []
    for field, value in message.ListFields():
        name, write, repeated = _plan(field)
        members.append(f"{name}[{','.join([write(inner) for inner in value])}]" if repeated else name + write(value))
    return members


def _written_pair(pair: common_pb2.KeyValue) -> str:
    if not pair.key or not pair.HasField("value") or getattr(pair, "key_strindex", False):
        return _written(pair)
    return f'{{"key":{write_string(pair.key)},"value":{_written_value(pair.value)}}}'


def _written_value(value: common_pb2.AnyValue) -> str:
    match value.WhichOneof("value"):
        case "string_value":
            return f'{{"stringValue":{write_string(value.string_value)}}}'
        case "int_value":
            return f'{{"intValue":"{value.int_value}"}}'
    return _written(value)


_OF_MESSAGES: dict[str, Callable[[Any], str]] = {"KeyValue": _written_pair, "AnyValue": _written_value}


@cache
def _plan(field: Field) -> tuple[str, Callable[[Any], str], bool]:
    """Return a field's key with its colon, the function that writes one value of it, and whether it is repeated."""
    if field.message_type is not None:
        write = _OF_MESSAGES.get(field.message_type.name, _written)
    else:
        write = scalar_writer(field)
    return f'"{field.json_name}":', write, field.is_repeated
