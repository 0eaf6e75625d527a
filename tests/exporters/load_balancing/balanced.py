"""Gateways on sockets that remember what they took, and can be stalled, busy, slow and gone."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from podtrail.component import Context, Ledger, Metrics
from podtrail.component.registry import find
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch, Group, encode_span, frame, read_request, resource_header, scope_header, split
from podtrail.otlp.span import SpanView
from podtrail.pipeline.sending import SendingQueue

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
RESOURCE, SCOPE = resource_header({"service.name": "kube-scheduler"}), scope_header("scheduler")
QUICK = {"initial_interval": "50ms", "max_interval": "100ms"}


def trace(number: int) -> bytes:
    """A trace id: the first 8 bytes differ as ids do."""
    return ((number + 1) * 0x9E3779B97F4A7C15 % 2**64 << 64 | number).to_bytes(16, "big")


def batch_of(*numbers: int, spans: int = 2, first: int = 0) -> Batch:
    """Spans of so many traces."""

    def group(number: int) -> Group:
        own = trace(number)
        raw = [
            encode_span(trace_id=own, span_id=(first + i + 1).to_bytes(8, "big"), name="Filter", start=1, end=2)
            for i in range(spans)
        ]
        return Group(RESOURCE, SCOPE, own, frame(raw), spans)

    return Batch([group(number) for number in numbers], arrived=0)


@dataclass
class Gateway:
    """A backend on a port of its own."""

    port: int = 0
    spans: Counter[tuple[bytes, bytes]] = field(default_factory=Counter)
    """How often each span was taken, by trace and span id."""
    requests: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    """Of the last request."""
    answer: Any = b""
    """What is answered: bytes, or a status."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Requests wait for it."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request comes."""
    server: grpc.aio.Server | None = None

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def traces(self) -> set[bytes]:
        return {trace_id for trace_id, _ in self.spans}

    async def export(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        self.metadata = dict(context.invocation_metadata() or ())
        self.arrived.set()
        await self.gate.wait()
        self.requests += 1
        answer = self.answer
        if not isinstance(answer, bytes):
            code, details, *trailers = answer
            context.set_trailing_metadata(tuple(trailers))
            await context.abort(code, details)
        for group in read_request(request).groups:
            self.spans.update((group.trace_id, SpanView(raw).span_id) for raw in split(group.spans))
        return answer

    async def start(self) -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20), ("grpc.so_reuseport", 0)])
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self.export)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),))
        self.port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        await server.start()
        self.server, self.gate = server, asyncio.Event()
        self.gate.set()

    async def stop(self) -> None:
        """Cut everything off."""
        if self.server is not None:
            await self.server.stop(None)
            self.server = None


@asynccontextmanager
async def gateways(count: int) -> AsyncIterator[Sequence[Gateway]]:
    """So many gateways."""
    async with AsyncExitStack() as stack:
        serving = [Gateway() for _ in range(count)]
        for gateway in serving:
            await gateway.start()
            stack.push_async_callback(gateway.stop)
        yield serving


async def until(holds: Callable[[], object]) -> None:
    """Return when something is so."""
    async with asyncio.timeout(60):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


class Balancing:
    """The exporter behind its queue, as a pipeline has it."""

    def __init__(self, **config: Any) -> None:
        factory = find("exporter", "load_balancing")
        assert factory is not None
        self.config = factory.Config.model_validate(config)
        assert isinstance(self.config, DeliverySettings)
        self.metrics, self.ledger = Metrics(), Ledger()
        log = logging.LoggerAdapter(logging.getLogger("podtrail.test"))
        context = Context(id="load_balancing", metrics=self.metrics, log=log)
        self.exporter = factory.create(self.config, context)
        self.queue = SendingQueue(self.exporter, "load_balancing", self.config, self.metrics, log)

    async def __aenter__(self) -> "Balancing":
        await self.exporter.__aenter__()
        await self.queue.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.queue.__aexit__(*exc)
        await self.exporter.__aexit__(*exc)

    def offer(self, batch: Batch) -> None:
        self.queue.offer(batch, self.ledger)

    async def settle(self) -> None:
        """Until all that was offered has come to an end."""
        async with asyncio.timeout(60):
            while self.queue.held():
                await self.queue.room()

    def metric(self, name: str) -> dict[str, float]:
        return dict(self.metrics.snapshot().get(name, {}))


def balancing(backends: Sequence[Gateway] | None = None, **config: Any) -> Balancing:
    """The exporter, plain text and quick to try again."""
    otlp = {"tls": {"insecure": True}, "retry_on_failure": QUICK, **config.pop("otlp", {})}
    if backends is not None:
        config.setdefault("resolver", {"static": {"hostnames": [each.name for each in backends]}})
    return Balancing(protocol={"otlp": otlp}, retry_on_failure=QUICK, **config)


def where(gateways: Sequence[Gateway]) -> dict[bytes, set[int]]:
    """Which gateways each trace is at."""
    found: defaultdict[bytes, set[int]] = defaultdict(set)
    for number, gateway in enumerate(gateways):
        for trace_id in gateway.traces:
            found[trace_id].add(number)
    return dict(found)
