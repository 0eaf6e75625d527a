"""What decides where a group of spans goes, as the number that the ring goes by: the CRC-32 of its key."""

import time
from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

from podtrail.otlp import Group, SpanView, Value, resource_attributes, scope_attributes, split
from podtrail.otlp.remembering import remembering
from podtrail.pod_identity import PodKeys
from podtrail_exporters.load_balancing.attribute_text import attribute_text

Route = Callable[[Sequence[Group]], Sequence[int]]
"""Returns the number of each group."""

SERVICE = ("service.name",)
"""By a service is by this attribute."""
_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
"""As the Collector writes them (`ptrace.SpanKind.String`)."""


def by_trace(groups: Sequence[Group]) -> Sequence[int]:
    """Go by the trace id: all spans of a trace together."""
    return [crc32(group[2]) for group in groups]


def by_pod(keys: PodKeys) -> Route:
    """Return a way to go by the Pod that a trace is about, and by the trace where no Pod is known."""

    def route(groups: Sequence[Group]) -> Sequence[int]:
        found = keys.keys(groups, time.time_ns())
        return [crc32(found[group.trace_id] or group.trace_id) for group in groups]

    return route


def by_attributes(names: Sequence[str]) -> Route:
    """Return a way to go by attributes, as contrib's exporter does.

    The key is `name=value|` for each name, with the value of the resource, else of the scope, else of the first span.
    `span.kind` and `span.name` are the span's own.
    """

    @remembering(256)
    def above(resource: bytes, scope: bytes) -> tuple[tuple[str, str | None], ...]:
        of_resource, of_scope = resource_attributes(resource), scope_attributes(scope)
        return tuple((name, _found(name, of_resource, of_scope)) for name in names)

    def number(group: Group) -> int:
        pairs = above(group.resource, group.scope)
        if any(text is None for _, text in pairs):
            span = SpanView(split(group.spans)[0])
            pairs = tuple((name, _of_span(name, span) if text is None else text) for name, text in pairs)
        return crc32("".join([f"{name}={text}|" for name, text in pairs]).encode())

    return lambda groups: [number(group) for group in groups]


def _found(name: str, of_resource: Mapping[str, Value], of_scope: Mapping[str, Value]) -> str | None:
    for attributes in (of_resource, of_scope):
        if name in attributes:
            return attribute_text(attributes[name])
    return None


def _of_span(name: str, span: SpanView) -> str:
    if name == "span.kind":
        return _KINDS[span.kind] if 0 <= span.kind < len(_KINDS) else ""
    if name == "span.name":
        return span.name
    return attribute_text(span.attributes.get(name))
