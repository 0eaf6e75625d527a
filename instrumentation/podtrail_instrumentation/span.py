"""The span of `k8s.io/component-base/tracing`: an OpenTelemetry span that is also logged when it took long.

    span = start("SchedulePod", {"k8s.pod.name": "web-0"}, clock=time.time_ns, tracer=tracer)
    phase = span.start("filter")
    phase.add_event("Computing predicates done")
    phase.end(threshold=0)
    span.end(threshold=100_000_000)

The steps are remembered whether or not anything is traced, so the log does not depend on sampling. OpenTelemetry is
asked once a root: the children of a root that is not recording make no call to it, which is what keeps tracing cheap
for those who sample little. All times come from `clock`, unix nanoseconds, which may run faster than the wall's.
"""

import logging
from collections.abc import Callable, Sequence
from contextvars import Token

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelSpan

from .recorded import RecordedSpan
from .steps import Fields, Operation, Step, describe

Clock = Callable[[], int]
Log = Callable[[str], None]

_NO_FIELDS: Fields = {}
NO_CONTEXT = Context()
_EVERY_STEP = logging.INFO - 4
"""V(4): what was long is logged with its short steps, too."""
_logger = logging.getLogger("podtrail_instrumentation.trace")


def log_long(text: str) -> None:
    """The default of what is done with the text about a long operation: one record of level INFO."""
    _logger.info("%s", text, extra={"source": "trace.go:236"})


class Span(Operation):
    """One operation. Made by `start`, ended once by `end`; ending it again does nothing."""

    __slots__ = ("_clock", "_context", "_log", "_otel", "_parent_context", "_root", "_tracer", "recording")

    def __init__(self, name: str, fields: Fields, clock: Clock, log: Log, started: int | None = None) -> None:
        super().__init__(name, fields, clock() if started is None else started)
        self._clock = clock
        self._log = log
        self._root = True
        self._tracer: Tracer | None = None
        self._otel: OtelSpan | None = None
        self._context: Context | None = None
        self._parent_context: Context | None = None
        self.recording = False
        """Whether attributes and events go anywhere. Check it before building costly ones."""

    def start(self, name: str, attributes: Fields = _NO_FIELDS, at: int | None = None) -> "Span":
        """Starts a child of this span, at `at` if it began before now."""
        child = Span(name, attributes, self._clock, self._log, at)
        child._root = False
        self.items.append(child)
        above = self._otel
        if not self.recording:
            child._context = self.context
        elif isinstance(above, RecordedSpan):
            child._otel = above.child(name, attributes, child.started)
            child._parent_context = self._context or self._parent_context
            child.recording = True
        else:
            assert self._tracer is not None
            child.record_with(self._tracer, self.context, (), SpanKind.INTERNAL)
        return child

    def leaf(
        self,
        name: str,
        attributes: Fields,
        started: int,
        ended: int,
        told: Fields = _NO_FIELDS,
        events: Sequence[Step] = (),
        failure: str = "",
    ) -> None:
        """Records a child that is over and that nothing nested under, at half the cost; the log hears nothing of it.

        `told` are more attributes, `failure` is the message of the status Error.
        """
        above = self._otel
        if not self.recording or above is None:
            return
        if isinstance(above, RecordedSpan):
            child: OtelSpan = above.child(name, attributes, started)
        else:
            assert self._tracer is not None
            child = self._tracer.start_span(name, self.context, attributes=attributes, start_time=started)
        if told:
            child.set_attributes(told)
        for event in events:
            child.add_event(event.name, event.fields, event.at)
        if failure:
            child.set_status(Status(StatusCode.ERROR, failure))
        child.end(ended)

    @property
    def context(self) -> Context | None:
        """The OpenTelemetry context with this span, or with its nearest traced ancestor; None when nothing traces."""
        if self._context is None and self._otel is not None:
            self._context = set_span_in_context(self._otel, self._parent_context or NO_CONTEXT)
        return self._context

    def record_with(self, tracer: Tracer, context: Context | None, links: Sequence[Link], kind: SpanKind) -> None:
        """Starts the OpenTelemetry span; for `start` and its like, once and at once."""
        self._tracer = tracer
        self._otel = tracer.start_span(
            self.name, context, kind=kind, attributes=self.fields, links=links, start_time=self.started
        )
        self.recording = self._otel.is_recording()
        self._parent_context = context

    def add_event(self, name: str, attributes: Fields = _NO_FIELDS, at: int | None = None) -> None:
        """Records an event of the OpenTelemetry span that is also a step in the log; now unless told otherwise."""
        now = self._clock() if at is None else at
        self.items.append(Step(name, now, attributes))
        if self.recording:
            assert self._otel is not None
            self._otel.add_event(name, attributes, timestamp=now)

    def set_attributes(self, attributes: Fields) -> None:
        """Adds attributes to the OpenTelemetry span; the log keeps those the span was started with."""
        if self.recording:
            assert self._otel is not None
            self._otel.set_attributes(attributes)

    def fail(self, message: str) -> None:
        """Gives the OpenTelemetry span the status Error with `message`."""
        if self.recording:
            assert self._otel is not None
            self._otel.set_status(Status(StatusCode.ERROR, message))

    @property
    def span_context(self) -> SpanContext:
        """What to pass on; invalid when nothing traces."""
        return INVALID_SPAN_CONTEXT if self._otel is None else self._otel.get_span_context()

    def active(self) -> "Active":
        """Makes `context` the current OpenTelemetry context, so that spans others start become this one's children."""
        return Active(self.context)

    def end(self, threshold: int | None, at: int | None = None) -> None:
        """Ends the span, at `at` if it was over before now.

        When this is a root, it and all in it that reached their thresholds (ns) are logged, nothing with None.
        """
        if self.ended is not None:
            return
        self.ended = self._clock() if at is None else at
        self.threshold = threshold
        if self.recording:
            assert self._otel is not None
            self._otel.end(self.ended)
        if self._root and threshold is not None:
            for text in describe(self, self._number(), everything=_logger.isEnabledFor(_EVERY_STEP)):
                self._log(text)

    def _number(self) -> int:
        """31 bits of the trace id, so that the log leads to the trace; without a trace, of the start."""
        trace_id = self._otel.get_span_context().trace_id if self._otel is not None else 0
        return (trace_id or self.started) & 0x7FFF_FFFF


class Active:
    """Enters an OpenTelemetry context, if there is one."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context | None) -> None:
        self._context = context
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        if self._context is not None:
            self._token = attach(self._context)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            detach(self._token)


def start(
    name: str,
    attributes: Fields = _NO_FIELDS,
    *,
    clock: Clock,
    tracer: Tracer | None = None,
    context: Context | None = None,
    links: Sequence[Link] = (),
    kind: SpanKind = SpanKind.INTERNAL,
    log: Log = log_long,
) -> Span:
    """Starts a root operation: a child of the span in `context` if there is one. Without `tracer` it is only logged."""
    span = Span(name, attributes, clock, log)
    if tracer is not None:
        span.record_with(tracer, NO_CONTEXT if context is None else context, links, kind)
    return span
