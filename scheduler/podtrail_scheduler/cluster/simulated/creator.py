"""Whoever creates the Pods: writes the trace context of the creation on them, as an API server with KEP-5915 would."""

from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    set_span_in_context,
)
from podtrail_instrumentation import inject_context

from .api_server import SimulatedApiServer
from .arrivals import PodArrival
from .identifiers import SeededIdGenerator
from .timeline import Timeline

SPAN_NAME = "POST /api/v1/namespaces/{:namespace}/pods"


class Creator:
    """Creates Pods as they arrive and lifts their gates. With a tracer, creations leave spans of an API server."""

    def __init__(
        self, timeline: Timeline, api_server: SimulatedApiServer, takes: int, tracer: Tracer | None, seed: str
    ) -> None:
        self._timeline = timeline
        self._api_server = api_server
        self._takes = takes
        self._tracer = tracer
        self._ids = SeededIdGenerator(f"{seed}/creator")
        self.created = 0

    def create(self, arrival: PodArrival) -> None:
        """The request arrives now; the Pod exists when it has been handled."""
        self.created += 1
        done = self._timeline.now() + self._takes
        told = inject_context({}, self._trace(arrival, done)) if arrival.traced else {}
        pod = arrival.pod.changed(creation_timestamp=done, annotations={**arrival.pod.annotations, **told})
        self._timeline.at(done, lambda: self._api_server.create_pod(pod, arrival.plan))
        if pod.scheduling_gates and arrival.gates_lifted_after is not None:
            self._timeline.at(done + arrival.gates_lifted_after, lambda: self._api_server.lift_gates(pod.uid))

    def _trace(self, arrival: PodArrival, done: int) -> Context:
        if self._tracer is None:
            ids = self._ids.generate_trace_id(), self._ids.generate_span_id()
            remote = SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            return set_span_in_context(NonRecordingSpan(remote), Context())
        span = self._tracer.start_span(
            SPAN_NAME,
            Context(),
            kind=SpanKind.SERVER,
            attributes={
                "http.request.method": "POST",
                "http.response.status_code": 201,
                "url.path": f"/api/v1/namespaces/{arrival.pod.namespace}/pods",
            },
            start_time=self._timeline.now(),
        )
        span.end(done)
        return set_span_in_context(span, Context())
