"""Backends that write down every span that comes, and in which life of podtrail it came."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACES = "opentelemetry.proto.collector.trace.v1.TraceService"


@dataclass(eq=False)
class Came:
    """A request that came."""

    life: int
    spans: list[bytes]
    answered: int = 0
    """How many were answered up to it; 0: it has no answer yet."""


@dataclass
class Recorder:
    """What came, in order."""

    life: int = 0
    over: bool = False
    """Whether that life has ended."""
    came: list[Came] = field(default_factory=list)
    ids: set[bytes] = field(default_factory=set)
    numbers: dict[bytes, set[int]] = field(default_factory=dict)
    """The numbers that roots of attempts came with."""
    raw: dict[bytes, set[bytes]] = field(default_factory=dict)
    """Spans as they came over the network, by id."""
    slow: float = 0.0
    """The longest time in seconds that an answer takes."""
    answered: int = 0
    refusing: bool = False
    """Whether it says that it can't now, and takes nothing."""
    port: int = 0
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    async def take(self, raw: bytes) -> None:
        """Write a request down, and take the time that an answer takes."""
        request = ExportTraceServiceRequest.FromString(raw)
        came = self.note(request, self.life)
        for span in (s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans):
            self.raw.setdefault(span.span_id, set()).add(span.SerializeToString())
        if self.slow:
            await asyncio.sleep(self.rng.random() * self.slow)
        if not self.over:  # what is answered now nobody hears
            self.answered += 1
            came.answered = self.answered

    def note(self, request: ExportTraceServiceRequest, life: int) -> Came:
        """Write a request down as of a life."""
        spans = [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        for span in spans:
            if span.name == "SchedulePod":
                self.numbers.setdefault(span.span_id, set()).update(_numbers(span))
        ids = [span.span_id for span in spans if span.name != "podtrail.amendment"]
        self.ids.update(ids)
        self.came.append(Came(life, ids))
        return self.came[-1]


def _numbers(span: Span) -> Iterable[int]:
    return (a.value.int_value for a in span.attributes if a.key == "podtrail.attempt.number")


@asynccontextmanager
async def grpc_backend(recorder: Recorder) -> AsyncIterator[None]:
    """Take OTLP over gRPC."""

    async def export(raw: bytes, context: Any) -> bytes:
        if recorder.refusing:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "told to")
        await recorder.take(raw)
        return b""

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(export)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TRACES, {"Export": method}),))
    recorder.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)


@asynccontextmanager
async def http_backend(recorder: Recorder) -> AsyncIterator[None]:
    """Take OTLP over HTTP."""

    async def export(request: web.Request) -> web.Response:
        if recorder.refusing:
            return web.Response(status=503)
        await recorder.take(await request.read())
        return web.Response(content_type="application/x-protobuf")

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/traces", export)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    recorder.port = runner.addresses[0][1]
    try:
        yield
    finally:
        await runner.cleanup()


class FileRecorder:
    """What stands in the file of a `file` exporter, read as far as its lines are whole."""

    def __init__(self, recorder: Recorder, path: Path) -> None:
        self._recorder = recorder
        self._path = path
        self._read = 0

    def look(self) -> None:
        """Take note of what has come since the last time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            rest = file.read()
        whole = rest.rfind(b"\n") + 1
        self._read += whole
        for line in rest[:whole].splitlines():
            self._recorder.note(_request(json.loads(line)), self._recorder.life)


def _request(line: dict[str, Any]) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for resource in line["resourceSpans"]:
        for told in (s for scopes in resource["scopeSpans"] for s in scopes["spans"]):
            span = scope.spans.add(span_id=bytes.fromhex(told["spanId"]), name=told["name"])
            for attribute in told.get("attributes", ()):
                if attribute["key"] == "podtrail.attempt.number":
                    span.attributes.add(key=attribute["key"]).value.int_value = int(attribute["value"]["intValue"])
    return request
