"""What a condition is asked about: a span, or an event of a span, with what stands around it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from podtrail.otlp import SpanFields
from podtrail.otlp.surroundings import EventFields


class SpanData(SpanFields, Protocol):
    """The fields of a span under OTLP's names, of which only those are there that conditions read."""

    dropped_attributes_count: int
    dropped_events_count: int
    dropped_links_count: int


class Telemetry:
    """A span under the headers of its group; `event` is set for conditions on events."""

    __slots__ = ("event", "now", "resource", "scope", "span")

    span: SpanData
    event: EventFields
    resource: bytes
    scope: bytes
    now: int
    """Pipeline time, Unix nanoseconds."""


Getter = Callable[[Telemetry], object]
"""Computes a value. EvaluationError when it has none."""

Pairs = Callable[[Telemetry], Sequence[bytes]]
"""Returns attributes as KeyValue messages."""
