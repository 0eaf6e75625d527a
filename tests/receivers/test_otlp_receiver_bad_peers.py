"""Clients of the `otlp` receiver that stop half-way, give up, flood, or speak something else: answered or closed."""

import asyncio
import logging
import struct
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf import json_format

from podtrail.component import Refused

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 120.0
MIB = 1 << 20
HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(506)
"""How a TLS client begins: a handshake record, its random and the rest being of no account here."""
TLS = Path(__file__).parents[1] / "data" / "tls"


def posted(body: bytes) -> bytes:
    """A whole request over HTTP."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def say(endpoint: str, said: bytes, *, close: bool = False) -> bytes:
    """Write bytes, close our half of the connection if told so, and return all that comes until the server closes."""
    host, _, port = endpoint.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(said)
    if close:
        writer.write_eof()
    try:
        async with asyncio.timeout(DEADLINE):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def export(endpoint: str, body: bytes) -> Any:
    async with grpc.aio.insecure_channel(endpoint) as channel:
        call: Any = channel.unary_unary(METHOD)
        return await call(body, timeout=DEADLINE)


def failed(served: Any, transport: str, reason: str) -> float:
    count: float = served.metric("podtrail_receiver_failed_requests_total", transport=transport, reason=reason)
    return count


async def test_a_grpc_call_without_a_message_is_answered(serving: Any) -> None:
    async with serving(grpc={}) as served, grpc.aio.insecure_channel(served["grpc"]) as channel:
        call: Any = channel.stream_unary(METHOD)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(iter(()), timeout=DEADLINE)
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert "without a message" in str(caught.value.details())
        assert failed(served, "grpc", "no_message") == 1


async def test_a_grpc_call_whose_message_never_comes_is_answered(serving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podtrail.transport.grpc_server._MESSAGE_SECONDS", 0.05)

    async with serving(grpc={}) as served, grpc.aio.insecure_channel(served["grpc"]) as channel:
        call: Any = channel.stream_unary(METHOD)(timeout=DEADLINE)
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await call.details() == "no message came within 0.05 s"
        assert failed(served, "grpc", "timeout") == 1


async def test_a_grpc_call_cancelled_before_its_message_is_counted(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        async with grpc.aio.insecure_channel(served["grpc"]) as channel:
            call: Any = channel.stream_unary(METHOD)(metadata=(("x", "y"),))
            await call.wait_for_connection()
            call.cancel()
            await export(served["grpc"], request_of(1).SerializeToString())
        async with asyncio.timeout(DEADLINE):
            while not failed(served, "grpc", "cut_off"):
                await export(served["grpc"], request_of(1).SerializeToString())
        assert failed(served, "grpc", "no_message") == 0


async def test_a_client_that_half_closes_after_its_request_gets_its_answer(serving: Any, request_of: Any) -> None:
    async with serving(http={}) as served:
        answer = await say(served["http"], posted(request_of(2).SerializeToString()), close=True)
        assert answer.startswith(b"HTTP/1.1 200")
        assert len(served.spans) == 2


async def test_all_requests_before_half_a_close_are_answered(serving: Any, request_of: Any) -> None:
    several = posted(request_of(1).SerializeToString()) * 100
    async with serving(http={}) as served:
        answer = await say(served["http"], several + HEAD + b"Content-Length: 9\r\n\r\nabc", close=True)
        assert answer.count(b"HTTP/1.1 200") == 100
        assert answer.count(b"HTTP/1.1 400") == 1
        assert len(served.spans) == 100


def test_half_a_close_within_a_body_that_nobody_reads_is_answered_and_no_error_of_ours(
    serving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving(http={}) as served:
            said = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
            assert (await say(served["http"], said, close=True)).startswith(b"HTTP/1.1 404")

    asyncio.run(main())
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("rest", [b"Content-Length: 10\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"])
async def test_half_a_close_within_a_body_is_answered(serving: Any, rest: bytes) -> None:
    async with serving(http={}) as served:
        answer = await say(served["http"], HEAD + rest, close=True)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"the connection ended before the request did" in answer
        assert failed(served, "http", "cut_off") == 1


async def test_half_a_close_within_the_head_closes_the_connection(serving: Any) -> None:
    async with serving(http={}) as served:
        assert await say(served["http"], b"POST /v1/tra", close=True) == b""


@pytest.mark.parametrize("first_wait", [True, False])
async def test_a_client_that_sends_no_more_is_refused_rather_than_kept_waiting(
    serving: Any, request_of: Any, first_wait: bool
) -> None:
    async with serving(http={}) as served:
        served.gate = asyncio.Event()
        host, _, port = served["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(posted(request_of(2).SerializeToString()))
        if first_wait:
            await served.entered.wait()
        writer.write_eof()
        async with asyncio.timeout(DEADLINE):
            answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1" in answer
        assert served.given_up.is_set() or not served.entered.is_set()
        assert served.spans == []
        assert served.metric("otelcol_receiver_refused_spans", transport="http") == 2


async def test_nothing_is_taken_of_a_client_whose_connection_is_lost(serving: Any, request_of: Any) -> None:
    async with serving(http={}) as served:
        served.gate = asyncio.Event()
        host, _, port = served["http"].rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(posted(request_of(2).SerializeToString()))
        await served.entered.wait()
        writer.transport.abort()
        async with asyncio.timeout(DEADLINE):
            await served.given_up.wait()
        served.gate.set()
        assert served.spans == []


async def test_a_head_that_trickles_in_is_cut_off(serving: Any) -> None:
    async with serving(http={"idle_timeout": "200ms"}) as served:
        host, _, port = served["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        closed = asyncio.ensure_future(reader.read())
        async with asyncio.timeout(DEADLINE):
            while not closed.done():
                writer.write(b"x")
                await asyncio.wait([closed], timeout=0.02)
        writer.close()


@pytest.mark.parametrize("said", [H2_PREFACE, TLS_HELLO, b"\x00" * 100_000, b"GET " + b"x" * 100_000])
async def test_other_protocols_on_the_http_port_are_answered_closed_and_counted(serving: Any, said: bytes) -> None:
    async with serving(http={}) as served:
        await say(served["http"], said)
        assert failed(served, "http", "malformed") == 1


@pytest.mark.parametrize("said", [TLS_HELLO, posted(b""), b"\x00" * 100_000])
async def test_other_protocols_on_the_grpc_port_are_closed(serving: Any, request_of: Any, said: bytes) -> None:
    async with serving(grpc={}) as served:
        await say(served["grpc"], said)
        await export(served["grpc"], request_of(1).SerializeToString())
        assert len(served.spans) == 1


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_plain_text_on_a_port_with_tls_is_closed(serving: Any, protocol: str) -> None:
    tls = {"cert_file": str(TLS / "server.pem"), "key_file": str(TLS / "server.key")}
    async with serving(**{protocol: {"tls": tls}}) as served:
        await say(served[protocol], posted(b"") if protocol == "http" else H2_PREFACE)


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _call(stream: int) -> bytes:
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": METHOD,
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    block = b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return _frame(1, 4, stream, block)


async def test_a_flood_of_calls_begun_and_reset_costs_nobody_else(serving: Any, request_of: Any) -> None:
    reset, no_error = _frame(3, 0, 1, struct.pack(">I", 8))[9:], struct.pack(">II", 0, 0)
    async with serving(grpc={}) as served:
        host, _, port = served["grpc"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(H2_PREFACE + _frame(4, 0, 0))
        for stream in range(1, 2_001, 2):
            writer.write(_call(stream) + _frame(3, 0, stream, reset))
        writer.write(_frame(7, 0, 0, no_error))
        await export(served["grpc"], request_of(1).SerializeToString())
        assert len(served.spans) == 1
        writer.close()
        async with asyncio.timeout(DEADLINE):
            await reader.read()


@pytest.mark.parametrize(
    ("transport", "of"),
    [(transport, of) for transport in ("grpc", "http") for of in ("one large span", "hardly anything but borders")]
    + [("http", "JSON")],
)
async def test_a_large_request_is_refused_unread_when_there_is_no_room(
    serving: Any, request_of: Any, transport: str, of: str
) -> None:
    body = request_of(1, payload=20 * MIB - 1_000).SerializeToString()
    head = HEAD
    if of == "hardly anything but borders":
        body = b"\n\0" * 1_900_000
    elif of == "JSON":
        body = json_format.MessageToJson(request_of(1, payload=20_000)).encode()
        head = head.replace(b"x-protobuf", b"json")
    async with serving(grpc={}, http={}) as served:
        served.no_room = Refused("no memory", after=3.0)
        if transport == "http":
            request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
            assert b" 503 " in await say(served["http"], request[: 6 * MIB], close=True)
        else:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await export(served["grpc"], body)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert failed(served, transport, "unread") == 1
        assert not served.entered.is_set()
        assert served.context.arriving.bytes == 0
        served.no_room = None
        await export(served["grpc"], body[:0])
        assert served.context.arriving.bytes == 0
