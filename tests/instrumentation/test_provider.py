import socket
import threading
import time
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from podtrail_instrumentation import (
    BatchSettings,
    BoundedBatchProcessor,
    SpanCounters,
    TracingConfiguration,
    extract_context,
    inject_context,
    provider_around,
    shutdown,
    tracer_provider,
)
from podtrail_instrumentation.provider import sampler

from tests.scheduler.collector import Collector

RESOURCE = Resource({"service.name": "kube-scheduler"})


class StuckExporter(SpanExporter):
    """Does not come back until it is shut down."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.entered.set()
        self.released.wait(120)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.released.set()


class BrokenExporter(SpanExporter):
    """Raises."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise OSError("no")

    def shutdown(self) -> None:
        raise OSError("no")


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    yield server
    server.stop()


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def configuration(endpoint: str, rate: int | None) -> TracingConfiguration:
    return TracingConfiguration(endpoint=endpoint, sampling_rate_per_million=rate)


def end_spans(tracer: Tracer, count: int, parent: Context | None = None) -> None:
    for number in range(count):
        tracer.start_span(f"span-{number}", parent).end()


def remote_parent(sampled: bool) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return set_span_in_context(NonRecordingSpan(SpanContext(1, 2, is_remote=True, trace_flags=flags)))


def test_no_configuration_makes_no_spans_but_passes_context_on() -> None:
    counters = SpanCounters()
    tracer = tracer_provider(None, RESOURCE, counters).get_tracer("test")
    annotations = {"tracing.k8s.io/traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    incoming = extract_context(annotations)
    span = tracer.start_span("SchedulePod", incoming)
    assert not span.is_recording()
    assert inject_context({}, set_span_in_context(span)) == annotations
    assert counters == SpanCounters()


@pytest.mark.parametrize("rate", [None, 0])
def test_no_rate_samples_no_root_but_gives_it_a_context_to_pass_on(collector: Collector, rate: int | None) -> None:
    provider = tracer_provider(configuration(collector.endpoint, rate), RESOURCE, SpanCounters())
    span = provider.get_tracer("test").start_span("SchedulePod", Context())
    assert not span.is_recording()
    traceparent = inject_context({}, set_span_in_context(span))["tracing.k8s.io/traceparent"]
    assert not int(traceparent[-2:], 16) & TraceFlags.SAMPLED
    shutdown(provider)
    assert collector.names == []


def test_no_rate_follows_a_parent_that_was_sampled(collector: Collector) -> None:
    provider = tracer_provider(configuration(collector.endpoint, None), RESOURCE, SpanCounters())
    end_spans(provider.get_tracer("test"), 1, remote_parent(sampled=True))
    end_spans(provider.get_tracer("test"), 1, remote_parent(sampled=False))
    shutdown(provider)
    assert collector.names == ["span-0"]


def test_the_whole_rate_exports_every_root_and_counts_it(collector: Collector) -> None:
    counters = SpanCounters()
    provider = tracer_provider(configuration(collector.endpoint, 1_000_000), RESOURCE, counters)
    end_spans(provider.get_tracer("test"), 3, Context())
    shutdown(provider)
    assert collector.names == ["span-0", "span-1", "span-2"]
    assert list(counters.samples()) == [
        ("scheduler_tracing_spans_exported_total", {"result": "success"}, 3),
        ("scheduler_tracing_spans_exported_total", {"result": "error"}, 0),
        ("scheduler_tracing_spans_dropped_total", {"reason": "queue_full"}, 0),
        ("scheduler_tracing_spans_dropped_total", {"reason": "export_failed"}, 0),
        ("scheduler_tracing_spans_dropped_total", {"reason": "rejected"}, 0),
        ("scheduler_tracing_spans_dropped_total", {"reason": "shutdown"}, 0),
    ]


def test_what_the_environment_says_of_the_resource_goes_before_what_the_component_says(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=unseen,host.name=node-7,service.instance.id=a%20b")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "second-scheduler")
    own = Resource({"service.name": "kube-scheduler", "service.version": "1", "host.name": "pod-1"})
    provider = tracer_provider(configuration(collector.endpoint, 1_000_000), own, SpanCounters())
    end_spans(provider.get_tracer("test"), 1, Context())
    shutdown(provider)
    assert collector.resources == [
        {
            "service.name": "second-scheduler",
            "service.version": "1",
            "service.instance.id": "a b",
            "host.name": "node-7",
        }
    ]


def test_half_the_rate_samples_about_half(collector: Collector) -> None:
    provider = tracer_provider(configuration(collector.endpoint, 500_000), RESOURCE, SpanCounters())
    tracer = provider.get_tracer("test")
    recording = sum(tracer.start_span("root", Context()).is_recording() for _ in range(1000))
    shutdown(provider)
    assert 400 < recording < 600


def test_shutdown_lets_go_of_a_black_hole_long_before_a_request_is_given_up(
    black_hole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")
    counters = SpanCounters()
    provider = tracer_provider(configuration(black_hole, 1_000_000), RESOURCE, counters)
    end_spans(provider.get_tracer("test"), 1000, Context())
    began = time.monotonic()
    shutdown(provider)
    assert time.monotonic() - began < 300  # 2, and whatever a busy machine takes
    assert counters.exported == 0
    assert counters.lost.total() == 1000


def test_a_full_queue_drops_what_comes_and_never_waits() -> None:
    counters, exporter = SpanCounters(), StuckExporter()
    processor = BoundedBatchProcessor(exporter, counters, BatchSettings(8, 4), shutdown_timeout=0.2)
    provider = provider_around(processor, RESOURCE)
    tracer = provider.get_tracer("test")
    end_spans(tracer, 4)
    assert exporter.entered.wait(60)
    end_spans(tracer, 25)
    assert +counters.lost == {"queue_full": 18}
    shutdown(provider)
    assert (counters.exported, counters.lost.total()) == (0, 29)


def test_an_exporter_that_raises_is_counted_and_the_next_batch_tried(caplog: pytest.LogCaptureFixture) -> None:
    counters = SpanCounters()
    processor = BoundedBatchProcessor(BrokenExporter(), counters, BatchSettings(max_export_batch_size=1))
    tracer = provider_around(processor, RESOURCE).get_tracer("test")
    for number in range(2):
        end_spans(tracer, 1)
        assert processor.force_flush(60_000)
        assert +counters.lost == {"export_failed": number + 1}
    assert "exporting 1 spans failed" in caplog.text


def test_spans_after_shutdown_are_counted_as_dropped(collector: Collector) -> None:
    counters = SpanCounters()
    provider = tracer_provider(configuration(collector.endpoint, 1_000_000), RESOURCE, counters)
    tracer = provider.get_tracer("test")
    shutdown(provider)
    shutdown(provider)
    end_spans(tracer, 2, Context())
    assert counters.lost["shutdown"] == 2


def test_a_batch_is_exported_without_anybody_asking() -> None:
    exporter = StuckExporter()
    exporter.released.set()
    counters = SpanCounters()
    processor = BoundedBatchProcessor(exporter, counters, BatchSettings(max_export_batch_size=2))
    tracer = provider_around(processor, RESOURCE).get_tracer("test")
    end_spans(tracer, 2)
    assert exporter.entered.wait(60)


def test_flushing_gives_up_after_its_timeout() -> None:
    exporter = StuckExporter()
    settings = BatchSettings(max_export_batch_size=1)
    processor = BoundedBatchProcessor(exporter, SpanCounters(), settings, shutdown_timeout=0.2)
    provider = provider_around(processor, RESOURCE)
    end_spans(provider.get_tracer("test"), 1)
    assert exporter.entered.wait(60)
    assert not processor.force_flush(10)
    shutdown(provider)
    assert get_current_span().get_span_context().is_valid is False


@given(trace_id=st.integers(1, 2**128 - 1), rate=st.sampled_from([0, 1, 250_000, 999_999, 1_000_000]))
def test_the_sampler_answers_as_those_of_the_sdk_it_stands_for(trace_id: int, rate: int) -> None:
    ours = sampler(TracingConfiguration(sampling_rate_per_million=rate))
    theirs = ParentBased(TraceIdRatioBased(rate / 1_000_000))
    for parent in (None, Context(), remote_parent(sampled=True), remote_parent(sampled=False)):
        answers = [each.should_sample(parent, trace_id, "root") for each in (ours, theirs)]
        assert answers[0].decision is answers[1].decision


class CountingIds(IdGenerator):
    """Ids that depend on how many were drawn before."""

    def __init__(self) -> None:
        self._random = Random(7)

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128)

    def generate_span_id(self) -> int:
        return self._random.getrandbits(64)


def test_roots_have_the_ids_and_the_fate_that_the_sdk_alone_would_give_them() -> None:
    theirs = ParentBased(TraceIdRatioBased(0.5))
    ours = sampler(TracingConfiguration(sampling_rate_per_million=500_000))

    def roots(sampler: Sampler) -> list[tuple[int, int, bool]]:
        processor = SimpleSpanProcessor(InMemorySpanExporter())
        tracer = provider_around(processor, RESOURCE, sampler=sampler, id_generator=CountingIds()).get_tracer("test")
        spans = [tracer.start_span("root", Context()) for _ in range(100)]
        contexts = [span.get_span_context() for span in spans]
        return [(each.trace_id, each.span_id, each.trace_flags.sampled) for each in contexts]

    assert roots(ours) == roots(theirs)


def test_a_sampled_root_as_current_span_is_the_parent_of_what_is_started_in_it() -> None:
    exporter = InMemorySpanExporter()
    always = sampler(TracingConfiguration(sampling_rate_per_million=1_000_000))
    tracer = provider_around(SimpleSpanProcessor(exporter), RESOURCE, sampler=always).get_tracer("test")
    with tracer.start_as_current_span("outer"):
        tracer.start_span("inner").end()
    inner, outer = exporter.get_finished_spans()
    assert inner.parent == outer.context


def test_a_provider_that_is_shut_down_at_once_leaves_no_thread_behind_that_fails(black_hole: str) -> None:
    # What a thread raises is an error of the test that is under way.
    for _ in range(3):
        shutdown(tracer_provider(configuration(black_hole, 0), RESOURCE, SpanCounters()))
