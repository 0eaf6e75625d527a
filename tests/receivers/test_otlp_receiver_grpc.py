"""The `otlp` receiver over gRPC: OTLP's checklist, with the SDK and with what an SDK would never send."""

import asyncio
import gzip
import socket
import struct
import zlib
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from podtrail.component import Refused
from podtrail.otlp import SpanView

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 120.0


async def export(endpoint: str, body: bytes, **kwargs: Any) -> bytes:
    async with grpc.aio.insecure_channel(endpoint) as channel:
        call: Any = channel.unary_unary(METHOD)
        answer: bytes = await call(body, timeout=DEADLINE, **kwargs)
        return answer


async def failure(endpoint: str, body: bytes) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await export(endpoint, body)
    return caught.value


def trailers(error: grpc.aio.AioRpcError) -> dict[str, bytes]:
    return {key: value for key, value in error.trailing_metadata() or () if isinstance(value, bytes)}


def _literal(name: str, value: str) -> bytes:
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


async def send_compressed(endpoint: str, encoding: str, body: bytes, until: bytes = b"grpc-status") -> bytes:
    """Send one call as raw HTTP/2, with any message coding; return what comes back, up to and with its status."""
    host, _, port = endpoint.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": METHOD,
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
        "grpc-encoding": encoding,
    }
    block = b"".join(_literal(name, value) for name, value in headers.items())
    message = b"\x01" + struct.pack(">I", len(body)) + body
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"") + _frame(1, 4, 1, block))
    for at in range(0, len(message), 16_384):
        writer.write(_frame(0, int(at + 16_384 >= len(message)), 1, message[at : at + 16_384]))
    answer = b""
    async with asyncio.timeout(DEADLINE):
        while until not in answer:
            piece = await reader.read(65_536)
            assert piece, answer
            answer += piece
    writer.close()
    return answer


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_takes_what_the_sdk_sends(serving: Any, compression: grpc.Compression) -> None:
    async with serving(grpc={}) as served:

        def send() -> None:
            provider = TracerProvider()
            exporter = OTLPSpanExporter(f"http://{served['grpc']}", insecure=True, compression=compression)
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            with provider.get_tracer("kube-scheduler").start_as_current_span("SchedulePod"):
                pass
            provider.shutdown()

        await asyncio.to_thread(send)
        assert [SpanView(span).name for span in served.spans] == ["SchedulePod"]
        assert served.metric("otelcol_receiver_accepted_spans", transport="grpc") == 1


async def test_an_empty_request_succeeds_and_reaches_no_pipeline(serving: Any) -> None:
    async with serving(grpc={}) as served:
        assert await export(served["grpc"], b"") == b""
        assert served.batches == []


async def test_a_bad_span_is_rejected_alone_with_a_reason(serving: Any, request_of: Any) -> None:
    request = request_of(3)
    request.resource_spans[0].scope_spans[0].spans[1].trace_id = bytes(15)
    async with serving(grpc={}) as served:
        answer = ExportTraceServiceResponse.FromString(await export(served["grpc"], request.SerializeToString()))
        assert answer.partial_success.rejected_spans == 1
        assert "trace_id of 15 bytes" in answer.partial_success.error_message
        assert len(served.spans) == 2
        assert served.metric("podtrail_receiver_rejected_spans_total", transport="grpc") == 1
        assert served.metric("otelcol_receiver_accepted_spans", transport="grpc") == 2


async def test_undecodable_bytes_are_an_invalid_argument(serving: Any) -> None:
    async with serving(grpc={}) as served:
        error = await failure(served["grpc"], b"\x0a\xff\xff")
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert Status.FromString(trailers(error)["grpc-status-details-bin"]).code == 3
        assert served.metric("podtrail_receiver_failed_requests_total", transport="grpc", reason="malformed") == 1


async def test_overload_is_unavailable_with_the_delay_in_both_places(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        served.refusal = Refused("memory is scarce", after=2.5)
        error = await failure(served["grpc"], request_of(4).SerializeToString())
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert error.details() == "memory is scarce"
        plain = RetryInfo.FromString(trailers(error)["google.rpc.retryinfo-bin"])
        packed = RetryInfo()
        assert Status.FromString(trailers(error)["grpc-status-details-bin"]).details[0].Unpack(packed)
        assert plain == packed
        assert plain.retry_delay.ToMilliseconds() == 2_500
        assert served.metric("otelcol_receiver_refused_spans", transport="grpc") == 4


async def test_the_sdk_comes_back_after_a_refusal(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        served.refusal = Refused("full", after=0.01)

        def send() -> None:
            provider = TracerProvider()
            exporter = OTLPSpanExporter(f"http://{served['grpc']}", insecure=True)
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            provider.get_tracer("t").start_span("again").end()
            provider.shutdown()

        sending = asyncio.create_task(asyncio.to_thread(send))
        async with asyncio.timeout(DEADLINE):
            await served.entered.wait()
            served.refusal = None
            await sending
        assert [SpanView(span).name for span in served.spans] == ["again"]


def _padded(request_of: Any, size: int) -> bytes:
    for payload in range(size - 80, size):
        raw: bytes = request_of(1, payload=payload).SerializeToString()
        if len(raw) == size:
            return raw
    raise AssertionError(size)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_the_limit_is_exact_before_and_after_decompression(
    serving: Any, request_of: Any, compression: grpc.Compression
) -> None:
    limit = 1 << 20
    async with serving(grpc={"max_recv_msg_size_mib": 1}) as served:
        await export(served["grpc"], _padded(request_of, limit), compression=compression)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await export(served["grpc"], _padded(request_of, limit + 1), compression=compression)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "google.rpc.retryinfo-bin" not in trailers(caught.value)
        details = trailers(caught.value).get("grpc-status-details-bin", b"")
        assert not Status.FromString(details).details
        assert len(served.spans) == 1


async def test_a_gzip_of_several_members_is_read_whole(serving: Any, request_of: Any) -> None:
    raw = request_of(10).SerializeToString()
    members = gzip.compress(raw[:100]) + gzip.compress(raw[100:])
    async with serving(grpc={}) as served:
        await send_compressed(served["grpc"], "gzip", members)
        assert len(served.spans) == 10


async def test_deflate_is_read(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        await send_compressed(served["grpc"], "deflate", zlib.compress(request_of(2).SerializeToString()))
        assert len(served.spans) == 2


async def test_damaged_gzip_is_an_invalid_argument(serving: Any, request_of: Any) -> None:
    packed = gzip.compress(request_of(50).SerializeToString())
    async with serving(grpc={}) as served:
        assert b"grpc-status\x013" in await send_compressed(served["grpc"], "gzip", packed[:-20])
        assert served.batches == []


async def test_an_unknown_message_coding_is_refused_and_the_next_request_served(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        await send_compressed(served["grpc"], "snappy", b"junk")
        await export(served["grpc"], request_of(1).SerializeToString())
        assert len(served.spans) == 1


async def test_an_unknown_method_is_unimplemented(serving: Any) -> None:
    async with serving(grpc={}) as served, grpc.aio.insecure_channel(served["grpc"]) as channel:
        call: Any = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_nothing_is_taken_of_a_client_that_has_given_up(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        served.gate = asyncio.Event()
        async with grpc.aio.insecure_channel(served["grpc"]) as channel:
            export_once: Any = channel.unary_unary(METHOD)
            call = export_once(request_of(2).SerializeToString())
            await served.entered.wait()
            call.cancel()
            await asyncio.wait_for(served.given_up.wait(), DEADLINE)
        served.gate.set()
        await export(served["grpc"], request_of(1).SerializeToString())
        assert len(served.spans) == 1
        assert served.metric("otelcol_receiver_accepted_spans", transport="grpc") == 1
        assert served.metric("otelcol_receiver_refused_spans", transport="grpc") == 2


async def test_serves_on_a_socket_in_the_file_system(serving: Any, request_of: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "otlp.sock")
    async with serving(grpc={"endpoint": path, "transport": "unix"}) as served:
        await export(f"unix:{path}", request_of(1).SerializeToString())
        assert len(served.spans) == 1


async def test_what_is_under_way_ends_when_the_receiver_stops(serving: Any, request_of: Any) -> None:
    async with serving(grpc={}) as served:
        served.gate = asyncio.Event()
        under_way = asyncio.create_task(export(served["grpc"], request_of(2).SerializeToString()))
        await served.entered.wait()
        asyncio.get_running_loop().call_later(0.1, served.gate.set)
    assert await under_way == b""
    assert len(served.spans) == 2


async def test_accepts_no_connection_once_it_has_stopped(serving: Any) -> None:
    async with serving(grpc={}) as served:
        host, _, port = served["grpc"].rpartition(":")
    with pytest.raises(ConnectionRefusedError), socket.create_connection((host, int(port)), timeout=DEADLINE):
        pass
