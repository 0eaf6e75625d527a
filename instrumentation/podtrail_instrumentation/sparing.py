"""A tracer provider that spares the component what asking the SDK about an unsampled root costs.

Most roots are not sampled, and for each of them the SDK makes some twenty calls to come to two ids and a no. Here the
sampler is asked first, and the SDK only when it said yes; it then goes on with the trace id for which that was said.
"""

import threading
from collections.abc import Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Tracer
from opentelemetry.util.types import Attributes

from .sampling import RateSampler


class _Ids(IdGenerator):
    """The ids of another generator, except for a trace id that this thread has drawn already."""

    def __init__(self, drawn_from: IdGenerator) -> None:
        self.drawn_from = drawn_from
        self._drawn = threading.local()

    def put_back(self, trace_id: int) -> None:
        """Has the next trace id of this thread be this one."""
        self._drawn.trace_id = trace_id

    def generate_trace_id(self) -> int:
        trace_id: int | None = self._drawn.__dict__.pop("trace_id", None)
        return self.drawn_from.generate_trace_id() if trace_id is None else trace_id

    def generate_span_id(self) -> int:
        return self.drawn_from.generate_span_id()

    def is_trace_id_random(self) -> bool:
        return self.drawn_from.is_trace_id_random()


class SparingTracerProvider(SdkTracerProvider):
    """The SDK's provider, its tracers asked only about what may be sampled."""

    def __init__(self, sampler: RateSampler, resource: Resource, id_generator: IdGenerator) -> None:
        self._ids = _Ids(id_generator)
        self._rate = sampler
        super().__init__(sampler=sampler, resource=resource, id_generator=self._ids, shutdown_on_exit=False)

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> Tracer:
        """A tracer for a component, as the SDK's."""
        tracer = super().get_tracer(instrumenting_module_name, instrumenting_library_version, schema_url, attributes)
        return _SparingTracer(tracer, self._rate, self._ids)


class _SparingTracer(Tracer):
    def __init__(self, tracer: Tracer, sampler: RateSampler, ids: _Ids) -> None:
        self._tracer = tracer
        self._sampler = sampler
        self._ids = ids

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
            ids = self._ids
            trace_id = ids.drawn_from.generate_trace_id()
            if not self._sampler.samples_root(trace_id):
                return NonRecordingSpan(SpanContext(trace_id, ids.drawn_from.generate_span_id(), is_remote=False))
            ids.put_back(trace_id)
        return self._tracer.start_span(
            name, context, kind, attributes, links, start_time, record_exception, set_status_on_exception
        )

    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
        return self._tracer.start_as_current_span(*args, **kwargs)
