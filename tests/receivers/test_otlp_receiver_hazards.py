"""What hostile or odd senders do to the `otlp` receiver, over real sockets of both transports."""

import asyncio
import gzip
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from podtrail.otlp import write_request
from podtrail.transport.settings import GrpcServerSettings, HttpServerSettings

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 120.0
MIB = 1 << 20
Send = Callable[[Any, bytes], Awaitable[ExportTraceServiceResponse]]


class Refusal(Exception):
    """The server said no for good."""


async def send_grpc(served: Any, body: bytes) -> ExportTraceServiceResponse:
    options = [("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(served["grpc"], options=options) as channel:
        call: Any = channel.unary_unary(METHOD)
        try:
            return ExportTraceServiceResponse.FromString(await call(body, timeout=DEADLINE))
        except grpc.aio.AioRpcError as error:
            if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED):
                raise Refusal(error.details()) from error
            raise


async def send_http(served: Any, body: bytes) -> ExportTraceServiceResponse:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE)) as session,
        session.post(
            f"http://{served['http']}/v1/traces",
            data=io.BytesIO(body),
            headers={"Content-Type": "application/x-protobuf"},
        ) as response,
    ):
        answer = await response.read()
        if response.status != 200:
            assert response.status in (400, 413)
            raise Refusal(response.status)
        return ExportTraceServiceResponse.FromString(answer)


BOTH = pytest.mark.parametrize("send", [send_grpc, send_http])


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def wrapped(tags: list[int], inner: bytes) -> bytes:
    """Put bytes into nested messages, the outermost tag first."""
    heads, size = [], len(inner)
    for tag in reversed(tags):
        head = bytes([tag]) + varint(size)
        heads.append(head)
        size += len(head)
    return b"".join(reversed(heads)) + inner


def nested(depth: int) -> bytes:
    """A request of two spans, the first with an attribute of so many arrays in one another."""
    ids = b"\x0a\x10" + b"\x01" * 16 + b"\x12\x08" + b"\x02" * 8
    value = wrapped([0x12] + [0x2A, 0x0A] * depth, b"")
    deep = ids + wrapped([0x4A], b"\x0a\x01k" + value)
    return wrapped([0x0A, 0x12], wrapped([0x12], deep) + wrapped([0x12], ids))


@BOTH
async def test_deep_nesting_costs_at_most_its_span(serving: Any, send: Send) -> None:
    async with serving(grpc={}, http={}) as served:
        assert (await send(served, nested(100_000))).partial_success.rejected_spans == 1
        assert len(served.spans) == 1
        assert not (await send(served, nested(10))).HasField("partial_success")
        assert len(served.spans) == 3


@BOTH
async def test_a_request_of_bad_spans_only_succeeds_in_part_and_reaches_no_pipeline(
    serving: Any, request_of: Any, send: Send
) -> None:
    request = request_of(20)
    for number, span in enumerate(request.resource_spans[0].scope_spans[0].spans):
        span.trace_id = bytes(number if number != 16 else 0)
    async with serving(grpc={}, http={}) as served:
        answer = await send(served, request.SerializeToString())
        assert answer.partial_success.rejected_spans == 20
        assert 0 < len(answer.partial_success.error_message) <= 1_024
        assert served.batches == []


async def test_a_bomb_is_refused_over_the_wire_and_the_next_request_served(serving: Any, request_of: Any) -> None:
    bomb = gzip.compress(bytes(200 * MIB))
    async with serving(grpc={}, http={}) as served:
        async with aiohttp.ClientSession() as session:
            headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
            url = f"http://{served['http']}/v1/traces"
            async with session.post(url, data=bomb, headers=headers) as answer:
                assert answer.status == 413
        with pytest.raises(Refusal, match="larger than"):
            await send_grpc(served, bomb)  # grpcio does not say whether a message is compressed: its content does
        for send in (send_grpc, send_http):
            await send(served, request_of(1).SerializeToString())
        assert len(served.spans) == 2


@BOTH
async def test_many_at_once_are_all_served(serving: Any, request_of: Any, send: Send) -> None:
    async with serving(grpc={}, http={}) as served:
        await asyncio.gather(*[send(served, request_of(10).SerializeToString()) for _ in range(50)])
        assert len(served.spans) == 500


async def test_integer_keys_that_collide_cost_nothing(serving: Any) -> None:
    keys = ",".join(f'"{number * (2**61 - 1)}":0' for number in range(20_000))
    body = f'{{"unknown":{{{keys}}},"resourceSpans":[]}}'.encode()
    async with serving(http={}) as served, aiohttp.ClientSession() as session:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"http://{served['http']}/v1/traces", data=body, headers=headers) as answer:
            assert (answer.status, json.loads(await answer.read())) == (200, {})


def test_the_default_limits() -> None:
    assert (GrpcServerSettings().max_recv_msg_size_mib, HttpServerSettings().max_request_body_size) == (64, 20 * MIB)


@BOTH
async def test_spans_whose_times_tell_no_duration_pass_and_are_counted(
    serving: Any, request_of: Any, send: Send
) -> None:
    request = request_of(4)
    odd = request.resource_spans[0].scope_spans[0].spans
    for span in odd:
        span.start_time_unix_nano, span.end_time_unix_nano = 5, 6
    odd[0].start_time_unix_nano = 0
    odd[1].end_time_unix_nano = 0
    odd[2].end_time_unix_nano = 4
    raw = request.SerializeToString()
    async with serving(grpc={}, http={}) as served:
        await send(served, raw)
        assert write_request(served.batches[0].groups) == raw
        counted = [
            served.metric("podtrail_receiver_spans_without_duration_total", transport=t) for t in ("grpc", "http")
        ]
        assert sum(counted) == 3
