import time
from collections.abc import Sequence

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, ParentBased, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState, set_span_in_context
from opentelemetry.util.types import Attributes
from podtrail_instrumentation import PropagationCounters, provider_around, start_reconcile_span
from podtrail_instrumentation.sampling import RateSampler

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ANNOTATIONS = {"tracing.k8s.io/traceparent": TRACEPARENT}


def reconcile(provider: TracerProvider, annotations: dict[str, str], context: Context | None = None) -> None:
    span = start_reconcile_span(
        "SchedulePod",
        annotations,
        tracer=provider.get_tracer("test"),
        clock=time.time_ns,
        attributes={},
        context=context,
    )
    span.end(10**15)


def test_starts_a_new_root_linked_to_what_the_annotation_names(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    reconcile(provider, ANNOTATIONS)
    [span] = exporter.get_finished_spans()
    assert span.kind is SpanKind.CONSUMER
    assert span.parent is None
    [link] = span.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == (TRACEPARENT[3:35], TRACEPARENT[36:52])
    assert span.context.trace_id != link.context.trace_id


def test_marks_the_link_as_claimed_by_whoever_wrote_the_annotation(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    reconcile(provider, ANNOTATIONS)
    [link] = exporter.get_finished_spans()[0].links
    assert dict(link.attributes or {}) == {"podtrail.link.source": "annotation", "podtrail.link.trusted": False}


def test_a_link_wins_over_the_span_in_the_context(provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
    outer = provider.get_tracer("test").start_span("outer")
    reconcile(provider, ANNOTATIONS, set_span_in_context(outer))
    [span] = exporter.get_finished_spans()
    assert span.parent is None
    assert len(span.links) == 1


def test_without_annotation_the_span_in_the_context_is_the_parent(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    outer = provider.get_tracer("test").start_span("outer")
    reconcile(provider, {}, set_span_in_context(outer))
    [span] = exporter.get_finished_spans()
    assert span.parent == outer.get_span_context()
    assert not span.links


def test_a_malformed_annotation_is_no_link(provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
    reconcile(provider, {"tracing.k8s.io/traceparent": TRACEPARENT.upper()})
    [span] = exporter.get_finished_spans()
    assert not span.links


def test_the_sampled_flag_of_the_annotation_decides_nothing(exporter: InMemorySpanExporter) -> None:
    processor = SimpleSpanProcessor(exporter)
    never = provider_around(processor, Resource({}), sampler=ALWAYS_OFF)
    reconcile(never, ANNOTATIONS)
    assert exporter.get_finished_spans() == ()
    reconcile(provider_around(processor, Resource({})), {"tracing.k8s.io/traceparent": TRACEPARENT[:-1] + "0"})
    assert len(exporter.get_finished_spans()) == 1


def test_switched_off_tracing_reads_no_annotation() -> None:
    counters = PropagationCounters("kube-scheduler", "default-scheduler", "Pod")
    span = start_reconcile_span(
        "SchedulePod", ANNOTATIONS, tracer=None, clock=time.time_ns, attributes={}, counters=counters
    )
    assert (span.recording, span.context) == (False, None)
    assert not counters.extracted


class LinkSampler(ParentBased):
    """Samples what is linked to something."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        return SamplingResult(Decision.RECORD_AND_SAMPLE if links else Decision.DROP)


@pytest.mark.parametrize(
    ("annotations", "count"), [(ANNOTATIONS, 1), ({}, 0), ({"tracing.k8s.io/traceparent": "x"}, 0)]
)
def test_a_sampler_sees_the_link(annotations: dict[str, str], count: int, exporter: InMemorySpanExporter) -> None:
    provider = provider_around(SimpleSpanProcessor(exporter), Resource({}), sampler=LinkSampler(ALWAYS_OFF))
    reconcile(provider, annotations)
    assert len(exporter.get_finished_spans()) == count


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_what_annotations_say_is_counted_of_every_root_sampled_or_not(
    exporter: InMemorySpanExporter, rate: float
) -> None:
    provider = provider_around(SimpleSpanProcessor(exporter), Resource({}), sampler=RateSampler(rate))
    counters = PropagationCounters("kube-scheduler", "default-scheduler", "Pod")
    for annotations in (ANNOTATIONS, {}, {}, {"tracing.k8s.io/traceparent": TRACEPARENT[:-1]}):
        tracer = provider.get_tracer("test")
        start_reconcile_span(
            "SchedulePod", annotations, tracer=tracer, clock=time.time_ns, attributes={}, counters=counters
        )
    assert counters.extracted == {"success": 1, "absent": 2, "invalid": 1}
