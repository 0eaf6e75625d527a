"""Spans on their way to a collector that stalls, refuses, takes a part, dies and comes back: over real sockets."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import TracerProvider
from podtrail_instrumentation import SpanCounters, TracingConfiguration, shutdown, start, tracer_provider

SPANS = 21
"""Of an attempt."""
DEADLINE = 60.0

Answer = Callable[[grpc.ServicerContext], object]
"""Aborts, waits or does nothing, before a request is taken."""


class Collector:
    """Takes requests as `answer` lets it; can be stopped and started again on its port."""

    def __init__(self, answer: Answer = lambda _: None) -> None:
        self.answer = answer
        self.asked = 0
        self.rejects = 0
        self.metadata: list[dict[str, str | bytes]] = []
        self._taken: Counter[tuple[bytes, bytes]] = Counter()
        self._server: grpc.Server | None = None
        self._port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def spans(self) -> int:
        """How many different ones came."""
        return len(self._taken)

    def spans_of_each_attempt(self) -> set[int]:
        return set(Counter(trace_id for trace_id, _ in self._taken).values())

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(4))
        handler = grpc.unary_unary_rpc_method_handler(
            self._export,
            request_deserializer=ExportTraceServiceRequest.FromString,
            response_serializer=ExportTraceServiceResponse.SerializeToString,
        )
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        self._port = self._server.add_insecure_port(f"127.0.0.1:{self._port}")
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None

    def _export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:
        self.asked += 1
        self.metadata.append(dict(context.invocation_metadata()))
        self.answer(context)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self._taken.update((span.trace_id, span.span_id) for span in scope.spans)
        answer = ExportTraceServiceResponse()
        if self.rejects:
            answer.partial_success.rejected_spans = self.rejects
            answer.partial_success.error_message = "not these"
        return answer


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.stop()


@contextmanager
def traced(collector: Collector, counters: SpanCounters) -> Iterator[TracerProvider]:
    tracing = TracingConfiguration(endpoint=collector.address, sampling_rate_per_million=1_000_000)
    provider = tracer_provider(tracing, Resource({"service.name": "test"}), counters, shutdown_timeout=DEADLINE)
    try:
        yield provider
    finally:
        shutdown(provider)


def attempts(provider: TracerProvider, number: int) -> None:
    tracer = provider.get_tracer("test")
    for _ in range(number):
        root = start("SchedulePod", clock=time.time_ns, tracer=tracer)
        for _ in range(SPANS - 1):
            root.start("filter").end(None)
        root.end(None)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def refusal(code: grpc.StatusCode, after: float | None) -> Answer:
    """Refuses, with the RetryInfo that a Collector sends."""

    def refuse(context: grpc.ServicerContext) -> None:
        if after is not None:
            detail = Any()
            detail.Pack(RetryInfo(retry_delay=Duration(nanos=int(after * 1e9))))
            context.set_trailing_metadata(
                (("grpc-status-details-bin", Status(code=code.value[0], details=[detail]).SerializeToString()),)
            )
        context.abort(code, "full")

    return refuse


def test_a_collector_that_stalls_costs_nothing_while_there_is_room(collector: Collector) -> None:
    going = threading.Event()
    collector.answer = lambda _: going.wait(DEADLINE)
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        attempts(provider, 500)
        assert not counters.lost.total()
        going.set()
        until(lambda: counters.exported == 500 * SPANS)
    assert collector.spans == 500 * SPANS
    assert collector.spans_of_each_attempt() == {SPANS}


def test_what_does_not_fit_is_lost_by_attempts_counted_and_said(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    going = threading.Event()
    collector.answer = lambda _: going.wait(DEADLINE)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1000")
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        attempts(provider, 500)
        lost = counters.lost["queue_full"]
        assert lost >= (500 * SPANS - 1000 - 512)
        assert lost % SPANS == 0
        going.set()
        until(lambda: counters.exported + lost == 500 * SPANS)
        until(lambda: f"{lost} spans were lost (queue_full {lost})" in caplog.text)
    assert collector.spans_of_each_attempt() == {SPANS}


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_collector_that_asks_to_come_again_is_asked_again(collector: Collector, code: grpc.StatusCode) -> None:
    refuse = refusal(code, 0.05)

    def refuse_three_times(context: grpc.ServicerContext) -> None:
        if collector.asked <= 3:
            refuse(context)

    collector.answer = refuse_three_times
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        attempts(provider, 50)
        until(lambda: counters.exported == 50 * SPANS)
    assert not counters.lost.total()
    assert collector.spans == 50 * SPANS


@pytest.mark.parametrize(
    ("code", "after"), [(grpc.StatusCode.INVALID_ARGUMENT, 0.05), (grpc.StatusCode.RESOURCE_EXHAUSTED, None)]
)
def test_what_a_collector_refuses_for_good_is_lost_and_said_with_its_words(
    collector: Collector, code: grpc.StatusCode, after: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    collector.answer = refusal(code, after)
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        attempts(provider, 25)
        until(lambda: counters.lost["export_failed"] > 0)
        until(lambda: f"the last problem: {code.name}: full" in caplog.text)
    assert collector.asked >= 1
    assert counters.exported == 0
    assert counters.lost.total() == 25 * SPANS


def test_a_collector_that_dies_and_comes_back_gets_everything(collector: Collector) -> None:
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        attempts(provider, 30)
        until(lambda: counters.exported > 0)
        collector.stop()
        attempts(provider, 60)
        until(lambda: counters.problem.startswith("UNAVAILABLE"))
        collector.start()
        until(lambda: counters.exported == 90 * SPANS)
    assert not counters.lost.total()
    assert collector.spans_of_each_attempt() == {SPANS}


def test_spans_that_a_collector_rejects_are_not_counted_as_exported(collector: Collector) -> None:
    collector.rejects = 5
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        attempts(provider, 20)
    assert (counters.exported, counters.lost["rejected"]) == (20 * SPANS - 5, 5)
    assert counters.problem == "not these"


def test_headers_and_compression_are_taken_from_the_environment(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "tenant=a%20b")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip")
    with traced(collector, SpanCounters()) as provider:
        attempts(provider, 1)
    assert collector.metadata[0]["tenant"] == "a b"
    assert collector.spans == SPANS


def test_a_value_that_otlp_does_not_know_costs_no_other_span(collector: Collector) -> None:
    counters = SpanCounters()
    with traced(collector, counters) as provider:
        tracer = provider.get_tracer("test")
        root = start("SchedulePod", clock=time.time_ns, tracer=tracer)
        root.set_attributes({"object": object(), "map": {"a": 1}, "none": None})  # type: ignore[dict-item]
        root.set_attributes({"surrogate": "\ud800"})
        root.end(None)
        attempts(provider, 1)
    assert counters.exported == 1 + SPANS
