"""A recorded span that costs little: what it is told is kept as it is told, and looked at when it is exported.

The SDK's span asks a sampler, locks, copies and checks every attribute; of an attempt's some thirty spans that would
be most of the cost of tracing. This one is an SDK `ReadableSpan` for processors and exporters all the same.
"""

from collections.abc import Mapping, Sequence
from time import time_ns
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import Attributes, AttributeValue

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET = Status(StatusCode.UNSET)


class Origin:
    """What all spans of one tracer have in common: who they are of, where they go, and where ids come from."""

    __slots__ = ("ids", "processor", "resource", "scope")

    def __init__(
        self, processor: SpanProcessor, resource: Resource, scope: InstrumentationScope, ids: IdGenerator
    ) -> None:
        self.processor = processor
        self.resource = resource
        self.scope = scope
        self.ids = ids


class LocalTrace:
    """What all spans of one trace that began here have in common, for a processor that keeps them together."""

    __slots__ = ("__weakref__", "begun", "finished", "lost", "over", "since")

    def __init__(self) -> None:
        self.finished: list[ReadableSpan] = []
        """Spans that have ended and wait for the root."""
        self.since = 0
        """When the first of them came, in the processor's count."""
        self.begun = False
        """Some spans have left before the root."""
        self.over = False
        """The root has ended."""
        self.lost = False


class RecordedSpan(ReadableSpan, Span):
    """A sampled span of a trace that began here. Attributes must be of the types that OTLP knows."""

    def __init__(
        self,
        origin: Origin,
        trace_id: int,
        parent: "RecordedSpan | None",
        name: str,
        attributes: Mapping[str, AttributeValue],
        start_time: int,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
    ) -> None:
        self.origin = origin
        self.trace_id = trace_id
        self.span_id = origin.ids.generate_span_id()
        self.parent_span = parent
        self.whole: LocalTrace = LocalTrace() if parent is None else parent.whole
        self._name = name
        self._kind = kind
        self._start_time = start_time
        self._end_time: int | None = None
        self.told: list[Mapping[str, AttributeValue]] = [attributes] if attributes else []
        """Attributes in the order in which they were given; later ones take the place of earlier ones."""
        self.happened: list[tuple[str, int, Mapping[str, AttributeValue]]] = []
        """Name, unix nanoseconds and attributes of each event."""
        self._links = links
        self._status = _UNSET
        self._made: SpanContext | None = None
        origin.processor.on_start(self)  # type: ignore[arg-type]  # an SDK span is what it looks like

    def child(self, name: str, attributes: Mapping[str, AttributeValue], start_time: int) -> "RecordedSpan":
        """Starts a span below this one."""
        return RecordedSpan(self.origin, self.trace_id, self, name, attributes, start_time)

    def get_span_context(self) -> SpanContext:
        """The context, made when it is first asked for."""
        if self._made is None:
            self._made = SpanContext(self.trace_id, self.span_id, is_remote=False, trace_flags=_SAMPLED)
        return self._made

    @property
    def context(self) -> SpanContext:
        """As `get_span_context`."""
        return self.get_span_context()

    @property
    def parent(self) -> SpanContext | None:
        """The parent's context, None for a root."""
        return None if self.parent_span is None else self.parent_span.get_span_context()

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """All attributes."""
        whole: dict[str, AttributeValue] = {}
        for told in self.told:
            whole.update(told)
        return whole

    @property
    def events(self) -> Sequence[Event]:
        """All events."""
        return tuple(Event(name, attributes, timestamp) for name, timestamp, attributes in self.happened)

    @property
    def resource(self) -> Resource:
        """Who the span is of."""
        return self.origin.resource

    @property
    def instrumentation_scope(self) -> InstrumentationScope:
        """Whose tracer made it."""
        return self.origin.scope

    @property
    def dropped_attributes(self) -> int:
        """None is ever dropped."""
        return 0

    dropped_events = dropped_links = dropped_attributes

    def is_recording(self) -> bool:
        """Until it has ended."""
        return self._end_time is None

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Adds attributes; the mapping must not change afterwards."""
        self.told.append(attributes)

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Adds one attribute."""
        self.told.append({key: value})

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        """Adds an event; `timestamp` is unix nanoseconds, now unless told."""
        self.happened.append((name, time_ns() if timestamp is None else timestamp, attributes or {}))

    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:
        """Adds a link."""
        self._links = (*self._links, Link(context, attributes))

    def update_name(self, name: str) -> None:
        """Renames the span."""
        self._name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Sets the status, unless it is Ok already."""
        if self._status.status_code is not StatusCode.OK:
            self._status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Adds the event `exception` of the semantic conventions."""
        told: dict[str, Any] = {"exception.type": type(exception).__qualname__, "exception.message": str(exception)}
        if escaped:
            told["exception.escaped"] = "True"
        self.add_event("exception", told | dict(attributes or {}), timestamp)

    def end(self, end_time: int | None = None) -> None:
        """Ends the span and hands it to the processor; ending it again does nothing."""
        if self._end_time is None:
            self._end_time = time_ns() if end_time is None else end_time
            self.origin.processor.on_end(self)
