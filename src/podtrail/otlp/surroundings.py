"""Resource, scope, status and events of spans, decoded for conditions."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.lite import lite_type
from podtrail.otlp.remembering import remembering
from podtrail.otlp.values import Value, from_key_values


class ResourceFields(NamedTuple):
    """The resource of a group, with its schema URL."""

    attributes: Mapping[str, Value]
    dropped_attributes_count: int
    schema_url: str


class ScopeFields(NamedTuple):
    """The instrumentation scope of a group, with its schema URL."""

    name: str
    version: str
    attributes: Mapping[str, Value]
    dropped_attributes_count: int
    schema_url: str


class EventFields(Protocol):
    """The fields of an event under OTLP's names."""

    time_unix_nano: int
    name: bytes
    """UTF-8."""
    dropped_attributes_count: int

    @property
    def attributes(self) -> "list[bytes]":
        """KeyValue messages, for `values.read_key_value`."""


@remembering(256)
def resource_fields(header: bytes) -> ResourceFields:
    """Return the resource in a group's `resource`."""
    message = trace_pb2.ResourceSpans.FromString(header)
    resource: resource_pb2.Resource = message.resource
    attributes = MappingProxyType(from_key_values(resource.attributes))
    return ResourceFields(attributes, resource.dropped_attributes_count, message.schema_url)


@remembering(256)
def scope_fields(header: bytes) -> ScopeFields:
    """Return the instrumentation scope in a group's `scope`."""
    message = trace_pb2.ScopeSpans.FromString(header)
    scope: common_pb2.InstrumentationScope = message.scope
    attributes = MappingProxyType(from_key_values(scope.attributes))
    return ScopeFields(scope.name, scope.version, attributes, scope.dropped_attributes_count, message.schema_url)


@remembering(256)
def status_message(status: bytes) -> str:
    """Return the message of a Status message; "" for a status that is not there."""
    return trace_pb2.Status.FromString(status).message


@lru_cache(maxsize=256)
def encode_status_code(code: int) -> bytes:
    """Return a Status message with this code."""
    return trace_pb2.Status(code=cast("Any", code)).SerializeToString()


_EVENT = lite_type(
    trace_pb2.Span.Event.DESCRIPTOR,
    dict.fromkeys(("time_unix_nano", "name", "attributes", "dropped_attributes_count")),
)


def read_event(event: bytes) -> EventFields:
    """Return the fields of an Event message, its attributes left as bytes."""
    return cast("EventFields", cast("Any", _EVENT).FromString(event))
