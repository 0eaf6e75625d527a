"""Writes spans anew with everything in them replaced that could tell where they come from: what a `Mask` says.

Kept is what tells nothing: kinds, status codes, flags, counts of what was dropped. Unknown fields are left out, for
nobody knows what they hold.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

from google.protobuf.message import Message
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.framing import frame, split
from podtrail.otlp.group import Group
from podtrail.otlp.lite import SPAN, lite_type
from podtrail.otlp.values import Value, from_any_value, to_any_value

M = TypeVar("M", bound=Message)

_MOST_HEADERS = 4096
_MOST_ATTRIBUTES = 1 << 14
_SHORT = 256
"""Up to so many bytes a KeyValue message is remembered once rewritten: what comes again is short."""
_SPAN = cast("Any", lite_type(SPAN, dict.fromkeys(SPAN.fields_by_name)))
"""All fields of a span, so that only unknown ones are unknown; what is a message stands as its bytes."""


class Mask(Protocol):
    """What is written instead."""

    def trace_id(self, id: bytes) -> bytes:
        """Replace 16 bytes."""

    def span_id(self, id: bytes) -> bytes:
        """Replace 8 bytes."""

    def time(self, time: int) -> int:
        """Replace Unix nanoseconds, never 0."""

    def name(self, name: str) -> str:
        """Replace the name of a span, event or scope, or a message."""

    def trace_state(self, state: str) -> str:
        """Replace a W3C trace state."""

    def schema_url(self, url: str) -> str:
        """Replace the address of a schema."""

    def value(self, key: str, value: Value) -> Value:
        """Replace an attribute's value."""


class Rewriter:
    """Replaces, group by group."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._headers: dict[tuple[bool, bytes], bytes] = {}
        self._short = lru_cache(_MOST_ATTRIBUTES)(self._pair)

    def rewrite(self, groups: Iterable[Group]) -> list[Group]:
        """Return groups in which everything is replaced."""
        return [
            Group(
                self._header(group.resource, self._resource, scope=False),
                self._header(group.scope, self._scope, scope=True),
                self._mask.trace_id(group.trace_id),
                frame(map(self._span, split(group.spans))),
                group.span_count,
            )
            for group in groups
        ]

    def _header(self, header: bytes, rewrite: Callable[[bytes], bytes], *, scope: bool) -> bytes:
        """Rewrite once what comes again and again, so that neighbours stay equal."""
        key = (scope, header)
        found = self._headers.get(key)
        if found is None:
            if len(self._headers) >= _MOST_HEADERS:
                self._headers.clear()
            found = self._headers[key] = rewrite(header)
        return found

    def _resource(self, header: bytes) -> bytes:
        message = _known(trace_pb2.ResourceSpans.FromString(header))
        self._attributes(message.resource.attributes)
        for entity in message.resource.entity_refs:
            entity.schema_url = self._mask.schema_url(entity.schema_url)
            entity.type = self._mask.name(entity.type)
        message.schema_url = self._mask.schema_url(message.schema_url)
        return message.SerializeToString()

    def _scope(self, header: bytes) -> bytes:
        message = _known(trace_pb2.ScopeSpans.FromString(header))
        if message.HasField("scope"):
            message.scope.name = self._mask.name(message.scope.name)
            message.scope.version = self._mask.name(message.scope.version)
            self._attributes(message.scope.attributes)
        message.schema_url = self._mask.schema_url(message.schema_url)
        return message.SerializeToString()

    def _span(self, raw: bytes) -> bytes:
        mask = self._mask
        span = _SPAN.FromString(raw)
        span.DiscardUnknownFields()
        span.trace_id = mask.trace_id(span.trace_id)
        span.span_id = mask.span_id(span.span_id)
        if span.parent_span_id:
            span.parent_span_id = mask.span_id(span.parent_span_id)
        if span.trace_state:
            span.trace_state = mask.trace_state(span.trace_state.decode()).encode()
        span.name = mask.name(span.name.decode()).encode()
        span.start_time_unix_nano = self._time(span.start_time_unix_nano)
        span.end_time_unix_nano = self._time(span.end_time_unix_nano)
        span.attributes[:] = map(self._attribute, span.attributes)
        if span.events:
            span.events[:] = map(self._event, span.events)
        if span.links:
            span.links[:] = map(self._link, span.links)
        if span.status:
            span.status = self._status(span.status)
        rewritten: bytes = span.SerializeToString()
        return rewritten

    def _event(self, raw: bytes) -> bytes:
        event = _known(trace_pb2.Span.Event.FromString(raw))
        event.name = self._mask.name(event.name)
        event.time_unix_nano = self._time(event.time_unix_nano)
        self._attributes(event.attributes)
        return event.SerializeToString()

    def _link(self, raw: bytes) -> bytes:
        link = _known(trace_pb2.Span.Link.FromString(raw))
        link.trace_id = self._mask.trace_id(link.trace_id)
        link.span_id = self._mask.span_id(link.span_id)
        link.trace_state = self._mask.trace_state(link.trace_state)
        self._attributes(link.attributes)
        return link.SerializeToString()

    def _status(self, raw: bytes) -> bytes:
        status = _known(trace_pb2.Status.FromString(raw))
        status.message = self._mask.name(status.message)
        return status.SerializeToString()

    def _attribute(self, raw: bytes) -> bytes:
        return self._short(raw) if len(raw) <= _SHORT else self._pair(raw)

    def _pair(self, raw: bytes) -> bytes:
        pair = common_pb2.KeyValue.FromString(raw)
        value = to_any_value(self._mask.value(pair.key, from_any_value(pair.value)))
        return common_pb2.KeyValue(key=pair.key, value=value).SerializeToString()

    def _time(self, time: int) -> int:
        return self._mask.time(time) if time else 0

    def _attributes(self, pairs: Iterable[common_pb2.KeyValue]) -> None:
        for pair in pairs:
            pair.value.CopyFrom(to_any_value(self._mask.value(pair.key, from_any_value(pair.value))))


def _known(message: M) -> M:
    message.DiscardUnknownFields()
    return message
