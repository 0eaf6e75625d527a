"""A client that sends a request again, because its answer was lost with podtrail's life: it is taken once."""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.reliability.crash.sending import Outcome
from tests.reliability.crash.settings import Setting, Transport
from tests.reliability.crash.stage import Stage, stage
from tests.service.toolbox import free_port

COMMIT = {"stage": "told", "operation": "write", "nth": 1}


def durable(transport: Transport = "grpc") -> Setting:
    return Setting(transport, "plain", "otlp_grpc", "durable")


@pytest.mark.parametrize(("transport", "phase"), [("grpc", "middle"), ("proto", "before"), ("json", "after")])
async def test_killed_around_its_commit_a_request_that_is_sent_again_comes_once(
    transport: Transport, phase: str, tmp_path: Path
) -> None:
    async with stage(durable(transport), tmp_path) as here:
        life = await here.start({**COMMIT, "phase": phase})
        requests = here.requests(3)
        life.tell(signal.SIGUSR1)
        assert await here.send(life, requests[:1]) == [Outcome.UNKNOWN]
        assert await life.end() == -signal.SIGKILL
        life = await here.start()
        assert await here.send(life, requests * 2) == 6 * [Outcome.TAKEN]
        await here.comes(here.kept(requests))
        life.tell(signal.SIGTERM)
        assert await life.end() == 0
        assert here.times() == Counter(id for request in requests for _, id in request.spans)


def made_spans(count: int) -> list[ReadableSpan]:
    """Return spans as the SDK makes them."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for _ in range(count):
        provider.get_tracer("scheduler").start_span("SchedulePod").end()
    provider.shutdown()
    return list(memory.get_finished_spans())


def on(here: Stage, port: int, protocol: str) -> None:
    """Have the next lives listen on a port."""
    here.changes["receivers"] = {
        "otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}}
    }
    here.changes["receivers"]["otlp"]["protocols"][protocol] = {"endpoint": f"127.0.0.1:{port}"}


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_the_sdk_tries_again_after_a_lost_answer_and_its_spans_come_once(protocol: str, tmp_path: Path) -> None:
    port = free_port()
    async with stage(durable(), tmp_path) as here:
        on(here, port, protocol)
        life = await here.start({**COMMIT, "phase": "after"})
        life.tell(signal.SIGUSR1)
        sdk: Any = (
            GrpcExporter(f"127.0.0.1:{port}", insecure=True, timeout=120)
            if protocol == "grpc"
            else HttpExporter(f"http://127.0.0.1:{port}/v1/traces", timeout=120)
        )
        spans = made_spans(5)
        exporting = asyncio.create_task(asyncio.to_thread(sdk.export, spans))
        assert await life.end() == -signal.SIGKILL
        life = await here.start()
        assert await exporting is SpanExportResult.SUCCESS
        sdk.shutdown()
        sent = [span.context.span_id.to_bytes(8, "big") for span in spans if span.context]
        await here.comes(set(sent))
        life.tell(signal.SIGTERM)
        assert await life.end() == 0
        assert here.times() == Counter(sent)
