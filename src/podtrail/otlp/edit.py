"""Writing: enrichment by appending to a span's bytes, and spans of our own.

Concatenation is merge: a serialized field put behind a message adds to it. Nothing that was there is touched, unless an
attribute of the same key exists, which is then replaced.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.lite import SPAN, lite_type
from podtrail.otlp.span import Event, Link, Status
from podtrail.otlp.values import Value, read_key_value, to_key_values

# With the ids, so that these still stand first in what is written.
_TRACE_STATE = cast("Any", lite_type(SPAN, dict.fromkeys(("trace_id", "span_id", "trace_state"))))
_ATTRIBUTES = cast("Any", lite_type(SPAN, dict.fromkeys(("trace_id", "span_id", "attributes"))))
_EVENTS = cast("Any", lite_type(SPAN, dict.fromkeys(("trace_id", "span_id", "events"))))
_SHORT = 128
_Pair = TypeVar("_Pair")


def _links(links: Sequence[Link]) -> list[trace_pb2.Span.Link]:
    return [
        trace_pb2.Span.Link(
            trace_id=link.trace_id,
            span_id=link.span_id,
            trace_state=link.trace_state,
            flags=link.flags,
            attributes=to_key_values(link.attributes),
        )
        for link in links
    ]


def append_attributes(span: bytes, attributes: Mapping[str, Value]) -> bytes:
    """Return a span's bytes with these attributes set."""
    if any(key.encode() in span for key in attributes):
        message = trace_pb2.Span.FromString(span)
        kept = [pair for pair in message.attributes if pair.key not in attributes]
        if len(kept) < len(message.attributes):
            del message.attributes[:]
            message.attributes.extend([*kept, *to_key_values(attributes)])
            return message.SerializeToString()
    return span + trace_pb2.Span(attributes=to_key_values(attributes)).SerializeToString()


def change_attributes(span: bytes, changed: Mapping[str, Value], removed: Collection[str]) -> bytes:
    """Return a span's bytes with attributes set (in their place, new ones last) and others removed, for good.

    What is not named stays as it is, byte for byte; of several attributes of one key that is changed one is left.
    """
    message = _ATTRIBUTES.FromString(span)
    encoded = {key: _encoded(key, value) for key, value in changed.items()}
    message.attributes[:] = _changed([(read_key_value(raw)[0], raw) for raw in message.attributes], encoded, removed)
    written: bytes = message.SerializeToString()
    return written


def change_resource(header: bytes, changed: Mapping[str, Value], removed: Collection[str]) -> bytes:
    """Return a group's `resource` with attributes of the resource set and others removed, as `change_attributes`."""
    message = trace_pb2.ResourceSpans.FromString(header)
    new = dict(zip(changed, to_key_values(changed), strict=True))
    pairs = _changed([(pair.key, pair) for pair in message.resource.attributes], new, removed)
    attributes = resource_pb2.Resource(attributes=pairs).attributes
    del message.resource.attributes[:]
    message.resource.attributes.extend(attributes)
    return message.SerializeToString()


def _changed(pairs: Iterable[tuple[str, _Pair]], new: Mapping[str, _Pair], removed: Collection[str]) -> list[_Pair]:
    left = dict(new)
    result = [
        left.pop(key, pair) if key in new else pair
        for key, pair in pairs
        if key not in removed and (key in left or key not in new)
    ]
    return [*result, *left.values()]


def _encoded(key: str, value: Value) -> bytes:
    if len(key) <= _SHORT and isinstance(value, str | int) and (not isinstance(value, str) or len(value) <= _SHORT):
        return _remembered(key, value)
    return _key_value(key, value)


@lru_cache(maxsize=1024, typed=True)
def _remembered(key: str, value: str | int) -> bytes:
    """Return the KeyValue of what is mostly the same for many spans; a bool is told from an int by its type."""
    return _key_value(key, value)


def _key_value(key: str, value: Value) -> bytes:
    (pair,) = to_key_values({key: value})
    return pair.SerializeToString()


def keep_events(span: bytes, positions: Collection[int]) -> bytes:
    """Return a span's bytes with only the events at these positions, which count from 0."""
    message = _EVENTS.FromString(span)
    message.events[:] = [event for at, event in enumerate(message.events) if at in positions]
    written: bytes = message.SerializeToString()
    return written


def set_trace_state(span: bytes, trace_state: str) -> bytes:
    """Return a span's bytes with this trace state instead of the one it may have."""
    message = _TRACE_STATE.FromString(span)
    message.trace_state = trace_state.encode()
    changed: bytes = message.SerializeToString()
    return changed


def append_links(span: bytes, links: Sequence[Link]) -> bytes:
    """Return a span's bytes with these links added."""
    return span + trace_pb2.Span(links=_links(links)).SerializeToString()


def annotate_links(span: bytes, attributes: Mapping[int, Mapping[str, Value]]) -> bytes:
    """Return a span's bytes with attributes set on existing links, given by the link's position."""
    message = trace_pb2.Span.FromString(span)
    for position, added in attributes.items():
        link = message.links[position]
        kept = [pair for pair in link.attributes if pair.key not in added]
        del link.attributes[:]
        link.attributes.extend([*kept, *to_key_values(added)])
    return message.SerializeToString()


def set_scope_attributes(header: bytes, attributes: Mapping[str, Value]) -> bytes:
    """Return a group's `scope` with these attributes set on the instrumentation scope."""
    message = trace_pb2.ScopeSpans.FromString(header)
    kept = [pair for pair in message.scope.attributes if pair.key not in attributes]
    del message.scope.attributes[:]
    message.scope.attributes.extend([*kept, *to_key_values(attributes)])
    return message.SerializeToString()


def encode_span(
    *,
    trace_id: bytes,
    span_id: bytes,
    name: str,
    start: int,
    end: int,
    parent_span_id: bytes = b"",
    kind: int = 1,
    flags: int = 0,
    trace_state: str = "",
    status: Status | None = None,
    attributes: Mapping[str, Value] | None = None,
    events: Sequence[Event] = (),
    links: Sequence[Link] = (),
) -> bytes:
    """Return the bytes of a new span.

    Args:
        trace_id: 16 bytes.
        span_id: 8 bytes.
        name: what it is called.
        start: Unix nanoseconds.
        end: Unix nanoseconds.
        parent_span_id: 8 bytes; empty: it is a root.
        kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
        flags: W3C trace flags in the lowest 8 bits, then 0x100: it is known whether the parent is remote, 0x200: it is.
        trace_state: the W3C header `tracestate`.
        status: its code (0 unset, 1 ok, 2 error) and message; None: it has none.
        attributes: text, numbers, booleans, bytes, lists and maps of these, by key.
        events: with their times, names and attributes.
        links: to other spans, with their attributes.
    """
    span: bytes = trace_pb2.Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent_span_id,
        trace_state=trace_state,
        name=name,
        kind=cast("Any", kind),
        start_time_unix_nano=start,
        end_time_unix_nano=end,
    ).SerializeToString()
    if attributes:
        span += b"".join([_attribute(key, value) for key, value in attributes.items()])
    if not (events or links or status or flags):
        return span
    rest = trace_pb2.Span(
        flags=flags,
        status=trace_pb2.Status(code=cast("Any", status.code), message=status.message) if status else None,
        events=[
            trace_pb2.Span.Event(time_unix_nano=e.time, name=e.name, attributes=to_key_values(e.attributes))
            for e in events
        ],
        links=_links(links),
    )
    return span + rest.SerializeToString()


def _attribute(key: str, value: Value) -> bytes:
    """Return an attribute as a field of a span. Many spans have the same ones."""
    if len(key) <= _SHORT:
        if isinstance(value, str) and len(value) <= _SHORT:
            return _text(key, value)
        if isinstance(value, list) and len(value) == 1 and isinstance(text := value[0], str) and len(text) <= _SHORT:
            return _one_text(key, text)
    return trace_pb2.Span(attributes=to_key_values({key: value})).SerializeToString()


@lru_cache(maxsize=4096)
def _text(key: str, value: str) -> bytes:
    return trace_pb2.Span(attributes=to_key_values({key: value})).SerializeToString()


@lru_cache(maxsize=1024)
def _one_text(key: str, value: str) -> bytes:
    return trace_pb2.Span(attributes=to_key_values({key: [value]})).SerializeToString()


def resource_header(attributes: Mapping[str, Value], schema_url: str = "") -> bytes:
    """Return a group's `resource` for a resource of our own."""
    resource = resource_pb2.Resource(attributes=to_key_values(attributes))
    return trace_pb2.ResourceSpans(resource=resource, schema_url=schema_url).SerializeToString()


def scope_header(name: str, version: str = "", schema_url: str = "") -> bytes:
    """Return a group's `scope` for an instrumentation scope of our own."""
    scope = common_pb2.InstrumentationScope(name=name, version=version)
    return trace_pb2.ScopeSpans(scope=scope, schema_url=schema_url).SerializeToString()
