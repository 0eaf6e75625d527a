"""Attribute values: OTLP's AnyValue as Python values, and back."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.remembering import remembering

Value = str | bool | int | float | bytes | list["Value"] | dict[str, "Value"] | None
"""None is a value of no type (an empty AnyValue). A bool is never an int here: test for bool first."""


_SHORT = 512
"""Up to so many bytes a KeyValue message is remembered once read: what comes again is short."""


def from_any_value(value: common_pb2.AnyValue) -> Value:
    """Return the Python value of an AnyValue."""
    kind = value.WhichOneof("value")
    match kind:
        case None:
            return None
        case "array_value":
            return [from_any_value(inner) for inner in value.array_value.values]
        case "kvlist_value":
            return {pair.key: from_any_value(pair.value) for pair in value.kvlist_value.values}
        case _:
            plain: Value = getattr(value, kind)
            return plain


def to_any_value(value: Value) -> common_pb2.AnyValue:
    """Return the AnyValue of a Python value.

    Raises:
        ValueError: an int has more than 64 bits.
    """
    match value:
        case None:
            return common_pb2.AnyValue()
        case bool():
            return common_pb2.AnyValue(bool_value=value)
        case str():
            return common_pb2.AnyValue(string_value=value)
        case int():
            return common_pb2.AnyValue(int_value=value)
        case float():
            return common_pb2.AnyValue(double_value=value)
        case bytes():
            return common_pb2.AnyValue(bytes_value=value)
        case list():
            array = common_pb2.ArrayValue(values=[to_any_value(inner) for inner in value])
            return common_pb2.AnyValue(array_value=array)
        case dict():
            return common_pb2.AnyValue(kvlist_value=common_pb2.KeyValueList(values=to_key_values(value)))


def to_key_values(attributes: Mapping[str, Value]) -> list[common_pb2.KeyValue]:
    """Return attributes as KeyValue messages."""
    return [common_pb2.KeyValue(key=key, value=to_any_value(value)) for key, value in attributes.items()]


def from_key_values(pairs: Sequence[common_pb2.KeyValue]) -> dict[str, Value]:
    """Return attributes by key, in their order; the first of several of one key counts, as in the Collector."""
    found: dict[str, Value] = {}
    for pair in pairs:
        if pair.key not in found:
            found[pair.key] = from_any_value(pair.value)
    return found


def read_key_value(pair: bytes) -> tuple[str, Value]:
    """Return key and value of a KeyValue message."""
    return _read_short(pair) if len(pair) <= _SHORT else _read(pair)


def _read(pair: bytes) -> tuple[str, Value]:
    message = common_pb2.KeyValue.FromString(pair)
    return message.key, from_any_value(message.value)


_read_short = lru_cache(maxsize=4096)(_read)


@remembering(256)
def resource_attributes(header: bytes) -> Mapping[str, Value]:
    """Return the attributes of the resource in a group's `resource`."""
    resource: resource_pb2.Resource = trace_pb2.ResourceSpans.FromString(header).resource
    return MappingProxyType(from_key_values(resource.attributes))


@remembering(256)
def scope_name(header: bytes) -> str:
    """Return the name of the instrumentation scope in a group's `scope`."""
    return trace_pb2.ScopeSpans.FromString(header).scope.name


@remembering(256)
def scope_attributes(header: bytes) -> Mapping[str, Value]:
    """Return the attributes of the instrumentation scope in a group's `scope`."""
    return MappingProxyType(from_key_values(trace_pb2.ScopeSpans.FromString(header).scope.attributes))
