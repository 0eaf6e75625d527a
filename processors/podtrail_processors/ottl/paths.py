"""The paths of conditions on spans and on events of spans: what they are called and how they are read.

Names and meanings are those of the Collector's contexts `span` and `spanevent`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from podtrail.otlp import KINDS, status_code
from podtrail.otlp.remembering import remembering
from podtrail.otlp.surroundings import resource_fields, scope_fields, status_message
from podtrail_processors.ottl.indexing import IndexKey, Maps, attribute_of_map, attribute_of_pairs, whole_map
from podtrail_processors.ottl.telemetry import Getter, Pairs, Telemetry
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import Items, PointInTime, SpanId, TraceId, kind_of, wrapped
from podtrail_processors.w3c import read_trace_state

Column = str
"""A field of spans that has few values, be they many spans, `resource` or `scope`; "" for none."""

WithKeys = Callable[[Sequence[IndexKey]], Getter]


@dataclass(frozen=True)
class Field:
    """A path: how its value is got, alone and with keys, and which field of a span it reads."""

    get: Getter
    reads: str = ""
    """The span's field under OTLP's name; "" for what is not of the span."""
    keyed: WithKeys | None = None
    """How a part is got; None when it has no parts."""
    searchable: bool = False
    """Whether its keys, or its text, stand in the bytes of the span or event as they are."""
    column: Column = ""
    """The field that it is computed from, if it is one whose values repeat."""
    fails: bool = False
    """Whether it has no value."""


class PathContext(NamedTuple):
    """Where a condition stands: what its bare paths mean, and which others it may use."""

    name: str
    own: str
    """The prefix that bare paths may do without."""
    fields: Mapping[str, Field]
    has_roots: bool
    """Whether `IsRootSpan` is known."""


def _of_pairs(pairs: Pairs, reads: str) -> Field:
    column = "attributes" if reads == "attributes" else ""
    return Field(lambda t: whole_map(pairs(t)), reads, partial(attribute_of_pairs, pairs), True, column)


def _of_map(attributes: Maps, column: Column) -> Field:
    return Field(lambda t: dict(attributes(t)), keyed=partial(attribute_of_map, attributes), column=column)


def _around(get: Getter, column: Column) -> Field:
    return Field(get, column=column)


def _id(raw: bytes, size: int) -> bytes:
    return raw if len(raw) == size else bytes(size)


def _kind_string(kind: int) -> str:
    return KINDS[kind].capitalize() if 0 <= kind < len(KINDS) else ""


def _deprecated_kind_string(kind: int) -> str:
    return f"SPAN_KIND_{KINDS[kind].upper()}" if 0 <= kind < len(KINDS) else ""


def _trace_state_entry(keys: Sequence[IndexKey]) -> Getter:
    key, *more = keys
    read = remembering(256)(read_trace_state)

    def get(telemetry: Telemetry) -> object:
        name = key.get(telemetry)
        if more or not isinstance(name, str):
            raise EvaluationError(f"the trace state has one text for a key, not {kind_of(name)}")
        entries = read(telemetry.span.trace_state)
        return None if entries is None else entries.get(name, "")

    return get


def _event_index(telemetry: Telemetry) -> object:  # noqa: ARG001 - as every path
    raise EvaluationError("the index of the event is not known")


_SPAN: Mapping[str, Field] = {
    "attributes": _of_pairs(attrgetter("span.attributes"), "attributes"),
    "dropped_attributes_count": Field(lambda t: t.span.dropped_attributes_count, "dropped_attributes_count"),
    "dropped_events_count": Field(lambda t: t.span.dropped_events_count, "dropped_events_count"),
    "dropped_links_count": Field(lambda t: t.span.dropped_links_count, "dropped_links_count"),
    "end_time": Field(lambda t: PointInTime(t.span.end_time_unix_nano), "end_time_unix_nano"),
    "end_time_unix_nano": Field(lambda t: wrapped(t.span.end_time_unix_nano), "end_time_unix_nano"),
    "events": Field(lambda t: Items(len(t.span.events)), "events"),
    "flags": Field(attrgetter("span.flags"), "flags", column="flags"),
    "kind": Field(attrgetter("span.kind"), "kind", column="kind"),
    "kind.deprecated_string": Field(lambda t: _deprecated_kind_string(t.span.kind), "kind", column="kind"),
    "kind.string": Field(lambda t: _kind_string(t.span.kind), "kind", column="kind"),
    "links": Field(lambda t: Items(len(t.span.links)), "links"),
    "name": Field(lambda t: t.span.name.decode(), "name", column="name"),
    "parent_span_id": Field(lambda t: SpanId(_id(t.span.parent_span_id, 8)), "parent_span_id"),
    "parent_span_id.string": Field(lambda t: _id(t.span.parent_span_id, 8).hex(), "parent_span_id"),
    "span_id": Field(lambda t: SpanId(_id(t.span.span_id, 8)), "span_id"),
    "span_id.string": Field(lambda t: _id(t.span.span_id, 8).hex(), "span_id"),
    "start_time": Field(lambda t: PointInTime(t.span.start_time_unix_nano), "start_time_unix_nano"),
    "start_time_unix_nano": Field(lambda t: wrapped(t.span.start_time_unix_nano), "start_time_unix_nano"),
    "status.code": Field(lambda t: status_code(t.span.status), "status", column="status"),
    "status.message": Field(lambda t: status_message(t.span.status), "status"),
    "trace_id": Field(lambda t: TraceId(_id(t.span.trace_id, 16)), "trace_id"),
    "trace_id.string": Field(lambda t: _id(t.span.trace_id, 16).hex(), "trace_id"),
    "trace_state": Field(
        lambda t: t.span.trace_state.decode(), "trace_state", _trace_state_entry, column="trace_state"
    ),
}
_RESOURCE: Mapping[str, Field] = {
    "resource.attributes": _of_map(lambda t: resource_fields(t.resource).attributes, "resource"),
    "resource.dropped_attributes_count": _around(
        lambda t: resource_fields(t.resource).dropped_attributes_count, "resource"
    ),
    "resource.schema_url": _around(lambda t: resource_fields(t.resource).schema_url, "resource"),
}
_SCOPE: Mapping[str, Field] = {
    "attributes": _of_map(lambda t: scope_fields(t.scope).attributes, "scope"),
    "dropped_attributes_count": _around(lambda t: scope_fields(t.scope).dropped_attributes_count, "scope"),
    "name": _around(lambda t: scope_fields(t.scope).name, "scope"),
    "schema_url": _around(lambda t: scope_fields(t.scope).schema_url, "scope"),
    "version": _around(lambda t: scope_fields(t.scope).version, "scope"),
}
_EVENT: Mapping[str, Field] = {
    "attributes": _of_pairs(attrgetter("event.attributes"), "events"),
    "dropped_attributes_count": Field(lambda t: t.event.dropped_attributes_count, "events"),
    "event_index": Field(_event_index, fails=True),
    "name": Field(lambda t: t.event.name.decode(), "events", searchable=True),
    "time": Field(lambda t: PointInTime(t.event.time_unix_nano), "events"),
    "time_unix_nano": Field(lambda t: wrapped(t.event.time_unix_nano), "events"),
}


def _under(prefix: str, fields: Mapping[str, Field]) -> Mapping[str, Field]:
    return {f"{prefix}.{name}": field for name, field in fields.items()}


_AROUND: Mapping[str, Field] = {
    **_under("span", _SPAN),
    **_RESOURCE,
    **_under("scope", _SCOPE),
    **_under("instrumentation_scope", _SCOPE),
}

SPAN = PathContext("span", "span", _AROUND, has_roots=True)
"""Conditions on spans."""

SPAN_EVENT = PathContext("spanevent", "spanevent", {**_AROUND, **_under("spanevent", _EVENT)}, has_roots=False)
"""Conditions on events of spans."""

ENUMS: Mapping[str, int] = {
    **{f"SPAN_KIND_{name.upper()}": number for number, name in enumerate(KINDS)},
    "STATUS_CODE_UNSET": 0,
    "STATUS_CODE_OK": 1,
    "STATUS_CODE_ERROR": 2,
}
"""The names of numbers."""
