"""What tests do to a running podtrail from outside: send spans, fetch pages, wait."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.free_ports import free_ports

PATIENCE = 120.0
"""Seconds after which an event that did not come will not come any more."""
_given: set[int] = set()


def sampler(wait: str = "300ms", percentage: float = 100, **more: Any) -> dict[str, Any]:
    """Return settings of `tail_sampling`: wait and percentage kept."""
    policy = {"name": "share", "type": "probabilistic", "probabilistic": {"sampling_percentage": percentage}}
    return {"decision_wait": wait, "policies": [policy], **more}


def spans(traces: int, spans: int = 3, name: str = "SchedulePod") -> list[ReadableSpan]:
    """Have the SDK make so many traces of so many spans."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("scheduler")
    for _ in range(traces):
        with tracer.start_as_current_span(name):
            for _ in range(spans - 1):
                tracer.start_span("Filter").end()
    provider.shutdown()
    return list(memory.get_finished_spans())


def send(
    port: int, traces: int = 1, spans: int = 3, timeout: float = PATIENCE, name: str = "SchedulePod"
) -> SpanExportResult:
    """Have the SDK's gRPC exporter send so many traces of so many spans to a port."""
    exporter = OTLPSpanExporter(f"127.0.0.1:{port}", insecure=True, timeout=timeout)
    try:
        return exporter.export(_made(traces, spans, name))
    finally:
        exporter.shutdown()


_made = spans


def free_port() -> int:
    """Return a port that stays free, another at each call."""
    while (port := free_ports(1)[0]) in _given:
        pass
    _given.add(port)
    return port


def get(url: str) -> tuple[int, str]:
    """Fetch a page: status, 0 when nobody listens, and body."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def metrics(port: int) -> dict[str, float]:
    """Read the metrics page at a port: sample (name and labels) to value."""
    status, text = get(f"http://127.0.0.1:{port}/metrics")
    assert status == 200
    samples = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in samples}


def until(holds: Callable[[], object]) -> None:
    """Ask again and again until the answer is true, within the deadline."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.02)
