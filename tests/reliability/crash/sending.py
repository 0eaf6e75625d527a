"""Clients of the three transports: they say whether a request was taken, was refused, or nobody knows."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import aiohttp
import grpc.aio
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.reliability.crash.recorder import TRACES
from tests.reliability.crash.settings import Transport

PATIENCE = 60.0
"""Seconds that a client waits for an answer."""


class Outcome(Enum):
    """What a client knows of a request."""

    TAKEN = "taken"
    REFUSED = "refused"
    UNKNOWN = "unknown"


Send = Callable[[ExportTraceServiceRequest], Awaitable[Outcome]]


@asynccontextmanager
async def connected(transport: Transport, grpc_port: int, http_port: int) -> AsyncIterator[Send]:
    """Give what sends a request to a life of podtrail."""
    if transport == "grpc":
        async with grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            export: Any = channel.unary_unary(f"/{TRACES}/Export")
            yield lambda body: _call(export, body)
    else:
        url = f"http://127.0.0.1:{http_port}/v1/traces"
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE)) as session:
            yield lambda body: _post(session, url, body, as_json=transport == "json")


async def _call(export: Any, body: ExportTraceServiceRequest) -> Outcome:
    try:
        answer = await export(body.SerializeToString(), timeout=PATIENCE)
        assert not answer, f"some of it was rejected: {answer!r}"
    except grpc.aio.AioRpcError as error:
        told = {key for key, _ in error.trailing_metadata() or ()}
        refused = error.code() is grpc.StatusCode.UNAVAILABLE and "grpc-status-details-bin" in told
        return Outcome.REFUSED if refused else Outcome.UNKNOWN
    return Outcome.TAKEN


async def _post(session: aiohttp.ClientSession, url: str, body: ExportTraceServiceRequest, *, as_json: bool) -> Outcome:
    kind = "application/json" if as_json else "application/x-protobuf"
    data = in_json(body) if as_json else body.SerializeToString()
    try:
        async with session.post(url, data=data, headers={"Content-Type": kind}) as answer:
            told = await answer.read()
            if answer.status == 200:
                assert told in (b"", b"{}"), f"some of it was rejected: {told!r}"
                return Outcome.TAKEN
            return Outcome.REFUSED if answer.status == 503 else Outcome.UNKNOWN
    except (TimeoutError, aiohttp.ClientError, ConnectionError):
        return Outcome.UNKNOWN


def in_json(body: ExportTraceServiceRequest) -> bytes:
    """Return a request in OTLP JSON."""
    made = MessageToDict(body, use_integers_for_enums=True)
    for span in (s for r in made["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]):
        for told in (span, *span.get("links", ())):
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in told:
                    told[key] = _hex(told[key])
    return json.dumps(made).encode()


def _hex(id: str) -> str:
    return base64.b64decode(id).hex()
