"""A tracer provider that spares the component what the SDK costs, of unsampled roots and of recorded ones.

Most roots are not sampled, and for each of them the SDK makes some twenty calls to come to two ids and a no. Here the
sampler is asked first. A root that it samples is a `RecordedSpan`, whose children are made without asking again; the
SDK makes the spans that have somebody else's parent.
"""

from collections.abc import Sequence
from time import time_ns
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Tracer
from opentelemetry.util.types import Attributes

from .recorded import Origin, RecordedSpan
from .sampling import RateSampler


class SparingTracerProvider(SdkTracerProvider):
    """The SDK's provider with one processor, its tracers asked only about what has a parent."""

    def __init__(
        self, processor: SpanProcessor, sampler: RateSampler, resource: Resource, id_generator: IdGenerator
    ) -> None:
        self._rate = sampler
        self._processor = processor
        super().__init__(sampler=sampler, resource=resource, id_generator=id_generator, shutdown_on_exit=False)
        self.add_span_processor(processor)

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> Tracer:
        """A tracer for a component, as the SDK's."""
        tracer = super().get_tracer(instrumenting_module_name, instrumenting_library_version, schema_url, attributes)
        scope = InstrumentationScope(
            instrumenting_module_name, instrumenting_library_version, schema_url, dict(attributes or {})
        )
        return _SparingTracer(tracer, self._rate, Origin(self._processor, self.resource, scope, self.id_generator))


class _SparingTracer(Tracer):
    def __init__(self, tracer: Tracer, sampler: RateSampler, origin: Origin) -> None:
        self._tracer = tracer
        self._sampler = sampler
        self._origin = origin

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        if context is not None and not context:
            ids = self._origin.ids
            trace_id = ids.generate_trace_id()
            if not self._sampler.samples_root(trace_id):
                return NonRecordingSpan(SpanContext(trace_id, ids.generate_span_id(), is_remote=False))
            started = time_ns() if start_time is None else start_time
            return RecordedSpan(self._origin, trace_id, None, name, attributes or {}, started, kind, links or ())
        return self._tracer.start_span(
            name, context, kind, attributes, links, start_time, record_exception, set_status_on_exception
        )

    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
        return self._tracer.start_as_current_span(*args, **kwargs)
