"""One span in full."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from podtrail.otlp import KINDS, Group, SpanView, Value, resource_attributes, scope_name
from podtrail.story.view import to_json

_MAX_VALUE = 4096
_MAX_PAIRS = 128


@dataclass(frozen=True, slots=True)
class EventStory:
    """An event of a span."""

    offset: int
    """Nanoseconds from the start of the span."""
    name: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SpanStory:
    """One span in full; `duration` in nanoseconds, None where it is unknown."""

    span_id: bytes
    parent_span_id: bytes
    name: str
    kind: str
    service: str
    scope: str
    trace_state: str
    start_unix_nano: int
    duration: int | None
    status: Literal["unset", "ok", "error"]
    message: str
    attributes: tuple[tuple[str, str], ...]
    resource: tuple[tuple[str, str], ...]
    events: tuple[EventStory, ...]


def service_of(group: Group) -> str:
    """Return the name of the service that a group's spans come from; "" where its resource does not say."""
    name = resource_attributes(group.resource).get("service.name")
    return name if isinstance(name, str) else ""


def tell_span(raw: bytes, group: Group) -> SpanStory:
    """Return what a span of a group says."""
    span = SpanView(raw)
    known = 0 <= span.kind < len(KINDS)
    return SpanStory(
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=span.name,
        kind=KINDS[span.kind] if known else str(span.kind),
        service=service_of(group),
        scope=scope_name(group.scope),
        trace_state=span.trace_state,
        start_unix_nano=span.start,
        duration=span.duration,
        status=("unset", "ok", "error")[span.status.code] if span.status.code in (0, 1, 2) else "unset",
        message=span.status.message,
        attributes=_pairs(span.attributes),
        resource=_pairs(resource_attributes(group.resource)),
        events=tuple(
            EventStory(event.time - span.start, event.name, _pairs(event.attributes))
            for event in span.events[:_MAX_PAIRS]
        ),
    )


def _pairs(attributes: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    pairs = [(key, _value(value)) for key, value in list(attributes.items())[:_MAX_PAIRS]]
    if len(attributes) > _MAX_PAIRS:
        pairs.append(("…", f"{len(attributes) - _MAX_PAIRS:,} more"))
    return tuple(pairs)


def _value(value: Value) -> str:
    shown = value if isinstance(value, str) else json.dumps(to_json(value), ensure_ascii=False)
    return shown if len(shown) <= _MAX_VALUE else f"{shown[:_MAX_VALUE]}… ({len(shown):,} characters)"
