"""A running `otlp` receiver in front of a sink, and requests to send to it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from podtrail_receivers.otlp import FACTORY

from podtrail.component import Context, Refused
from podtrail.otlp import Batch, split


class Served:
    """What came through a receiver, and where it listens."""

    def __init__(self, protocols: Mapping[str, Any], limits: Mapping[str, Any] | None) -> None:
        self.context = Context(id="otlp")
        written = {"protocols": protocols} | ({} if limits is None else {"client_limits": limits})
        self.receiver = FACTORY.create(FACTORY.Config.model_validate(written), self.context)
        self.batches: list[Batch] = []
        self.refusal: Refused | None = None
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.given_up = asyncio.Event()
        self.no_room: Refused | None = None

    def ask(self) -> None:
        if self.no_room is not None:
            raise self.no_room

    async def __call__(self, batch: Batch) -> None:
        self.entered.set()
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.given_up.set()
                raise
        if self.refusal is not None:
            raise self.refusal
        self.batches.append(batch)

    @property
    def spans(self) -> list[bytes]:
        return [span for batch in self.batches for group in batch.groups for span in split(group.spans)]

    def __getitem__(self, protocol: str) -> str:
        endpoint = self.receiver.endpoints[protocol]
        assert isinstance(endpoint, str)
        return endpoint

    def metric(self, name: str, **labels: str) -> float:
        rows = self.context.metrics.snapshot().get(name, {})
        return rows.get(",".join(sorted(f"{key}={value}" for key, value in ({"receiver": "otlp"} | labels).items())), 0)


@asynccontextmanager
async def _serving(
    *,
    client_limits: Mapping[str, Any] | None = None,
    authenticators: Mapping[str, Any] | None = None,
    **protocols: Mapping[str, Any],
) -> AsyncIterator[Served]:
    listening = {name: {"endpoint": "127.0.0.1:0"} | dict(settings) for name, settings in protocols.items()}
    served = Served(listening, client_limits)
    served.receiver.authenticate_by(authenticators or {})
    async with served.receiver:
        running = asyncio.create_task(served.receiver.run(served))
        try:
            yield served
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
def serving() -> Callable[..., AbstractAsyncContextManager[Served]]:
    """Return a function that starts an `otlp` receiver: `async with serving(grpc={}, http={}) as served`."""
    return _serving


def _request(spans: int = 1, *, name: str = "SchedulePod", payload: int = 0) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number in range(1, spans + 1):
        span = scope.spans.add(
            trace_id=number.to_bytes(16, "big"), span_id=number.to_bytes(8, "big"), name=name, flags=0x301
        )
        if payload:
            span.attributes.append(KeyValue(key="payload", value=AnyValue(string_value="x" * payload)))
    return request


@pytest.fixture
def request_of() -> Callable[..., ExportTraceServiceRequest]:
    """Return a function that makes a request of so many spans."""
    return _request
