"""The `otlp` receiver over HTTP: OTLP's checklist, with the SDK and with what an SDK would never send."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import cramjam
import pytest
import zstandard
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from podtrail.component import Refused
from podtrail.otlp import SpanView

DEADLINE = 120.0
PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
ONE_SPAN = {
    "resourceSpans": [
        {"scopeSpans": [{"spans": [{"traceId": "AB" * 16, "spanId": "cd" * 8, "name": "SchedulePod", "kind": 1}]}]}
    ]
}


class Answer:
    """An HTTP response, read whole."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self.content_type = response.content_type
        self.body = body

    @property
    def message(self) -> str:
        """The message of the google.rpc.Status that the body holds, in the encoding that the headers name."""
        if self.content_type == "application/json":
            return str(json.loads(self.body)["message"])
        assert self.content_type == "application/x-protobuf"
        return str(Status.FromString(self.body).message)


async def ask(
    served: Any, body: Any, headers: dict[str, str], *, method: str = "POST", path: str = "/v1/traces"
) -> Answer:
    timeout = aiohttp.ClientTimeout(total=DEADLINE)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.request(method, f"http://{served['http']}{path}", data=body, headers=headers) as response,
    ):
        return Answer(response, await response.read())


async def talk(served: Any, *pieces: bytes, until: bytes = b"") -> bytes:
    """Write raw bytes to the server's socket; return what it says until it says `until` or closes the connection."""
    host, _, port = served["http"].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(DEADLINE):
        answer = await (reader.readuntil(until) if until else reader.read())
    writer.close()
    return answer


@pytest.mark.parametrize("compression", list(Compression))
async def test_takes_what_the_sdk_sends(serving: Any, compression: Compression) -> None:
    async with serving(http={}) as served:

        def send() -> None:
            provider = TracerProvider()
            exporter = OTLPSpanExporter(f"http://{served['http']}/v1/traces", compression=compression)
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            with provider.get_tracer("kube-scheduler").start_as_current_span("SchedulePod"):
                pass
            provider.shutdown()

        await asyncio.to_thread(send)
        assert [SpanView(span).name for span in served.spans] == ["SchedulePod"]
        assert served.metric("otelcol_receiver_accepted_spans", transport="http") == 1


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"no HTTP\r\n\r\n"])
async def test_answers_name_podtrail_and_no_library(serving: Any, said: bytes) -> None:
    async with serving(http={}) as served:
        assert b"\r\nServer: podtrail\r\n" in await talk(served, said)


@pytest.mark.parametrize(("headers", "body"), [(PROTOBUF, b""), (JSON, b"{}")])
async def test_an_empty_request_succeeds_in_the_requests_encoding(
    serving: Any, headers: dict[str, str], body: bytes
) -> None:
    async with serving(http={}) as served:
        answer = await ask(served, body, headers)
        assert (answer.status, answer.content_type) == (200, headers["Content-Type"])
        assert answer.body == body


async def test_json_and_protobuf_arrive_alike_on_one_port(serving: Any, request_of: Any) -> None:
    async with serving(http={}) as served:
        headers = {"Content-Type": "application/json; charset=utf-8"}
        answer = await ask(served, json.dumps(ONE_SPAN).encode(), headers)
        assert (answer.status, answer.content_type, answer.body) == (200, "application/json", b"{}")
        await ask(served, request_of(1).SerializeToString(), PROTOBUF)
        assert [SpanView(span).name for span in served.spans] == ["SchedulePod", "SchedulePod"]
        assert SpanView(served.spans[0]).trace_id == bytes.fromhex("ab" * 16)


async def test_a_bad_span_is_rejected_alone_in_both_encodings(serving: Any, request_of: Any) -> None:
    request = request_of(2)
    request.resource_spans[0].scope_spans[0].spans[0].span_id = bytes(8)
    spans = [*ONE_SPAN["resourceSpans"][0]["scopeSpans"][0]["spans"], {"traceId": "xyz", "spanId": "cd" * 8}]
    async with serving(http={}) as served:
        binary = await ask(served, request.SerializeToString(), PROTOBUF)
        partial = ExportTraceServiceResponse.FromString(binary.body).partial_success
        assert (binary.status, partial.rejected_spans) == (200, 1)
        assert partial.error_message
        text = await ask(served, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode(), JSON)
        assert json.loads(text.body)["partialSuccess"]["rejectedSpans"] == "1"
        assert len(served.spans) == 2


@pytest.mark.parametrize(
    ("key", "signal"),
    [("resourceLogs", "logs"), ("resource_metrics", "metrics"), ("resourceProfiles", "profiles"), ("data", "unknown")],
)
async def test_a_body_of_another_signal_is_counted_logged_once_and_answered_with_a_warning(
    serving: Any, caplog: pytest.LogCaptureFixture, key: str, signal: str
) -> None:
    async with serving(http={}) as served:
        bodies: Sequence[Mapping[str, object]] = ({key: [{}]}, {key: [{}], **ONE_SPAN})
        for body in bodies:
            answer = await ask(served, json.dumps(body).encode(), JSON)
            assert answer.status == 200
        assert len(served.spans) == 1
        told = served.metric("podtrail_receiver_other_signal_requests_total", transport="http", signal=signal)
        assert told == (2 if signal != "unknown" else 1)  # unknown keys beside known ones are to be ignored
    assert [record.message for record in caplog.records if "skipped a request" in record.message] == [
        "http: skipped a request "
        + ("without resourceSpans" if signal == "unknown" else f"of {signal}")
        + ": only traces are handled here; further ones are only counted"
    ]


async def test_logs_and_metrics_in_protobuf_are_rejected_as_spans_without_ids(serving: Any) -> None:
    logs = ExportLogsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1, trace_id=bytes(range(16)))
    metrics = ExportMetricsServiceRequest()
    metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="m" * 16, description="d")
    async with serving(http={}) as served:
        for request in (logs, metrics):
            answer = await ask(served, request.SerializeToString(), PROTOBUF)
            assert ExportTraceServiceResponse.FromString(answer.body).partial_success.rejected_spans == 1
        assert served.metric("podtrail_receiver_rejected_spans_total", transport="http") == 2


def _compressed(encoding: str, raw: bytes) -> bytes:
    match encoding:
        case "gzip":
            return gzip.compress(raw)
        case "deflate":
            return zlib.compress(raw)
        case "zstd":
            return zstandard.compress(raw)
        case "snappy":
            return bytes(cramjam.snappy.compress_raw(raw))
        case "x-snappy-framed":
            return bytes(cramjam.snappy.compress(raw))
        case "lz4":
            return bytes(cramjam.lz4.compress(raw))
    return raw


ENCODINGS = ["gzip", "deflate", "zstd", "snappy", "x-snappy-framed", "lz4"]


@pytest.mark.parametrize("encoding", ["identity", *ENCODINGS])
async def test_reads_every_encoding_it_names(serving: Any, request_of: Any, encoding: str) -> None:
    async with serving(http={}) as served:
        body = _compressed(encoding, request_of(20).SerializeToString())
        answer = await ask(served, body, PROTOBUF | {"Content-Encoding": encoding})
        assert answer.status == 200
        assert len(served.spans) == 20


async def test_reads_gzip_of_several_members_and_zstd_of_several_frames(serving: Any, request_of: Any) -> None:
    raw = request_of(20).SerializeToString()
    async with serving(http={}) as served:
        for encoding in ("gzip", "zstd"):
            body = _compressed(encoding, raw[:77]) + _compressed(encoding, raw[77:])
            assert (await ask(served, body, PROTOBUF | {"Content-Encoding": encoding})).status == 200
        assert len(served.spans) == 40


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
async def test_damaged_compression_is_a_bad_request(
    serving: Any, request_of: Any, encoding: str, headers: dict[str, str]
) -> None:
    body = _compressed(encoding, request_of(20).SerializeToString())
    async with serving(http={}) as served:
        for damaged in (body[: len(body) // 2], b"no such thing", b""):
            answer = await ask(served, damaged, headers | {"Content-Encoding": encoding})
            assert (answer.status, answer.content_type) == (400, headers["Content-Type"])
            assert encoding.removeprefix("x-").removesuffix("-framed") in answer.message


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_bomb_is_too_large(serving: Any, encoding: str) -> None:
    body = _compressed(encoding, bytes(8 << 20))
    async with serving(http={"max_request_body_size": 1 << 20}) as served:
        answer = await ask(served, body, PROTOBUF | {"Content-Encoding": encoding})
        assert answer.status == 413
        assert "Retry-After" not in answer.headers
        assert Status.FromString(answer.body).code == 8
        assert served.metric("podtrail_receiver_failed_requests_total", transport="http", reason="too_large") == 1


async def _in_chunks(raw: bytes) -> Any:
    for at in range(0, len(raw), 1_000):
        yield raw[at : at + 1_000]


@pytest.mark.parametrize("chunked", [False, True])
async def test_the_limit_is_exact(serving: Any, request_of: Any, chunked: bool) -> None:
    raw = request_of(100).SerializeToString()
    for limit, status in ((len(raw), 200), (len(raw) - 1, 413)):
        async with serving(http={"max_request_body_size": limit}) as served:
            answer = await ask(served, _in_chunks(raw) if chunked else raw, PROTOBUF)
            assert answer.status == status
            packed = await ask(served, gzip.compress(raw), PROTOBUF | {"Content-Encoding": "gzip"})
            assert packed.status == status
            assert served.metric("otelcol_receiver_accepted_spans", transport="http") == (200 if status == 200 else 0)


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]x", b'{"resourceSpans": 5}', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000],
)
async def test_undecodable_json_is_a_bad_request(serving: Any, body: bytes) -> None:
    async with serving(http={}) as served:
        answer = await ask(served, body, JSON)
        assert (answer.status, answer.content_type) == (400, "application/json")
        assert answer.message
        assert (await ask(served, json.dumps(ONE_SPAN).encode(), JSON)).status == 200


async def test_undecodable_protobuf_is_a_bad_request(serving: Any) -> None:
    async with serving(http={}) as served:
        answer = await ask(served, b"\x0a\xff\xff", PROTOBUF)
        assert (answer.status, answer.content_type) == (400, "application/x-protobuf")
        assert "ExportTraceServiceRequest" in answer.message


@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
async def test_overload_says_when_to_come_back(serving: Any, request_of: Any, headers: dict[str, str]) -> None:
    async with serving(http={}) as served:
        served.refusal = Refused("memory is scarce", after=1.2)
        body = request_of(1).SerializeToString() if headers is PROTOBUF else json.dumps(ONE_SPAN).encode()
        answer = await ask(served, body, headers)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert answer.message == "memory is scarce"
        assert served.metric("otelcol_receiver_refused_spans", transport="http") == 1


@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
async def test_wrong_paths_and_methods_are_answered_in_the_requests_encoding(
    serving: Any, headers: dict[str, str]
) -> None:
    async with serving(http={}) as served:
        lost = await ask(served, b"", headers, path="/v1/metrics")
        assert (lost.status, lost.content_type) == (404, headers["Content-Type"])
        assert "/v1/traces" in lost.message
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            wrong = await ask(served, b"", headers, method=method)
            assert (wrong.status, wrong.content_type) == (405, headers["Content-Type"])
            assert "POST" in wrong.message
            assert "POST" in wrong.headers["Allow"]


async def test_other_content_types_and_encodings_are_unsupported(serving: Any) -> None:
    async with serving(http={"compression_algorithms": ["", "gzip"]}) as served:
        text = await ask(served, b"hello", {"Content-Type": "text/plain"})
        assert text.status == 415
        assert "text/plain" in text.message
        for encoding in ("snappy", "zstd", "gzip, gzip"):
            coded = await ask(served, b"hello", PROTOBUF | {"Content-Encoding": encoding})
            assert (coded.status, coded.content_type) == (415, "application/x-protobuf")
            assert coded.headers["Accept-Encoding"] == "gzip"


async def test_one_connection_takes_many_requests_also_behind_an_error(serving: Any, request_of: Any) -> None:
    async with serving(http={}) as served:
        good = request_of(1).SerializeToString()
        head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
        requests = b"".join(
            head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body for body in (good, b"\xff", good)
        )
        last = head + f"Connection: close\r\nContent-Length: {len(good)}\r\n\r\n".encode() + good
        answer = await talk(served, requests, last)
        assert answer.count(b"HTTP/1.1 200") == 3
        assert answer.count(b"HTTP/1.1 400") == 1
        assert len(served.spans) == 3


async def test_waits_for_the_go_ahead_of_a_client_that_asks(serving: Any, request_of: Any) -> None:
    async with serving(http={}) as served:
        body = request_of(1).SerializeToString()
        timeout = aiohttp.ClientTimeout(total=DEADLINE)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(f"http://{served['http']}/v1/traces", data=body, headers=PROTOBUF, expect100=True) as answer,
        ):
            assert answer.status == 200
        assert len(served.spans) == 1


async def test_a_slow_client_is_told_so(serving: Any) -> None:
    async with serving(http={"read_timeout": "50ms"}) as served:
        head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        begun = head + b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
        answer = await talk(served, begun, until=b'"message":"the request did not arrive within 0.05 s"}')
        assert answer.startswith(b"HTTP/1.1 408")


async def test_a_body_in_chunks_that_are_none_is_refused(serving: Any) -> None:
    async with serving(http={}) as served:
        head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        bad = await talk(served, head + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n\r\n")
        assert b" 400 " in bad
        assert b'"message"' in bad


async def test_web_pages_may_send_when_their_origin_is_allowed(serving: Any, request_of: Any) -> None:
    cors = {"allowed_origins": ["https://*.example.org"], "allowed_headers": ["X-Tenant"], "max_age": 600}
    async with serving(http={"cors": cors}) as served:
        page = {"Origin": "https://app.example.org", "Access-Control-Request-Method": "POST"}
        asked = await ask(served, b"", page, method="OPTIONS")
        assert asked.status == 204
        assert asked.headers["Access-Control-Allow-Origin"] == "https://app.example.org"
        assert asked.headers["Access-Control-Allow-Headers"] == "Content-Type, X-Tenant"
        assert asked.headers["Access-Control-Max-Age"] == "600"
        sent = await ask(served, request_of(1).SerializeToString(), PROTOBUF | page)
        assert sent.headers["Access-Control-Allow-Origin"] == "https://app.example.org"
        stranger = await ask(served, b"", {"Origin": "https://example.com"}, method="OPTIONS")
        assert "Access-Control-Allow-Origin" not in stranger.headers


async def test_what_is_under_way_ends_when_the_receiver_stops(serving: Any, request_of: Any) -> None:
    async with serving(http={}) as served:
        served.gate = asyncio.Event()
        under_way = asyncio.create_task(ask(served, request_of(2).SerializeToString(), PROTOBUF))
        await served.entered.wait()
        asyncio.get_running_loop().call_later(0.1, served.gate.set)
    assert (await under_way).status == 200
    assert len(served.spans) == 2
