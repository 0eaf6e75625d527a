"""OTLP over HTTP: what is sent, and what each answer means (OTLP specification, OTLP/HTTP)."""

import asyncio
import gzip
import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import zstandard
from aiohttp import web
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from podtrail.component import Permanent, Retryable, StartError
from podtrail.otlp import write_request
from podtrail.otlp.json import read_json_request
from tests.exporters.conftest import http_backend, make_batch, make_exporter

RETRYABLE = [429, 502, 503, 504]
FINAL = [301, 307, 400, 401, 403, 404, 408, 413, 415, 422, 500, 501, 505]


def plain(raw: bytes) -> bytes:
    return raw


def unzstd(raw: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(raw)


@pytest.mark.parametrize("spans", [3, 3000], ids=["small", "large"])
@pytest.mark.parametrize("encoding", ["proto", "json"])
@pytest.mark.parametrize(("compression", "decompress"), [("gzip", gzip.decompress), ("zstd", unzstd), ("none", plain)])
async def test_sends_what_it_was_given(encoding: str, compression: str, decompress: Any, spans: int) -> None:
    async with http_backend() as backend:
        url = f"http://localhost:{backend.port}/prefix/"
        settings = {"encoding": encoding, "compression": compression, "headers": {"Authorization": "Bearer x"}}
        async with make_exporter("otlphttp", endpoint=url, **settings) as exporter:
            assert await exporter.send(make_batch(spans)) == 0
        body = decompress(backend.requests[0])
        sent = write_request(read_json_request(body).groups) if encoding == "json" else body
        assert sent == write_request(make_batch(spans).groups)
        assert backend.paths == ["/prefix/v1/traces"]
        headers = backend.headers[0]
        assert headers["authorization"] == "Bearer x"
        assert headers.get("content-encoding") == (None if compression == "none" else compression)
        assert headers["content-type"] == f"application/{'x-protobuf' if encoding == 'proto' else 'json'}"
        assert headers["user-agent"].startswith("podtrail/")


async def test_a_traces_endpoint_is_used_as_it_is() -> None:
    async with (
        http_backend() as backend,
        make_exporter("otlp_http", traces_endpoint=f"http://localhost:{backend.port}/in") as exporter,
    ):
        await exporter.send(make_batch())
        assert backend.paths == ["/in"]


def failure_of(*script: Any, **settings: Any) -> Exception:
    """What the exporter raises for the first answer of a script."""

    async def main() -> Exception:
        async with (
            http_backend(*script) as backend,
            make_exporter("otlp_http", endpoint=f"http://localhost:{backend.port}", **settings) as exporter,
        ):
            with pytest.raises((Retryable, Permanent)) as failure:
                await exporter.send(make_batch())
            assert len(backend.requests) == 1
            return failure.value

    return asyncio.run(main())


@pytest.mark.parametrize("status", RETRYABLE)
def test_tries_again_what_the_specification_calls_retryable(status: int) -> None:
    failure = failure_of(web.Response(status=status, text="later"))
    assert isinstance(failure, Retryable)
    assert str(failure) == f"HTTP {status}: later"
    assert failure.after is None


@pytest.mark.parametrize("status", FINAL)
def test_never_repeats_or_follows_anything_else(status: int) -> None:
    answer = web.Response(status=status, headers={"Location": "http://localhost:1/elsewhere", "Retry-After": "1"})
    assert isinstance(failure_of(answer), Permanent)


@pytest.mark.parametrize(
    ("said", "low", "high"),
    [("17", 17, 17), (timedelta(hours=1), 3000, 3600), (timedelta(hours=-1), 0, 0)],
    ids=["seconds", "a date", "a date that is over"],
)
def test_waits_as_long_as_retry_after_says(said: str | timedelta, low: float, high: float) -> None:
    text = said if isinstance(said, str) else format_datetime(datetime.now(UTC) + said, usegmt=True)
    answer = web.Response(status=503, headers={"Retry-After": text})
    failure = failure_of(answer)
    assert isinstance(failure, Retryable)
    assert failure.after is not None
    assert low <= failure.after <= high


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "²"])
def test_a_retry_after_that_cannot_be_read_counts_as_none(text: str) -> None:
    answer = web.Response(status=503, headers={"Retry-After": text})
    failure = failure_of(answer)
    assert isinstance(failure, Retryable)
    assert failure.after is None


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(
            status=400, body=Status(message="bad span").SerializeToString(), content_type="application/x-protobuf"
        ),
        web.json_response({"message": "bad span"}, status=400),
        web.Response(status=400, text="bad span"),
    ],
    ids=["protobuf", "JSON", "text"],
)
def test_tells_what_the_backend_says(answer: Any) -> None:
    assert str(failure_of(answer)) == "HTTP 400: bad span"


def test_a_connection_that_breaks_is_tried_again() -> None:
    assert isinstance(failure_of(None), Retryable)


async def test_a_backend_that_is_down_is_tried_again() -> None:
    async with http_backend() as former:
        port = former.port
    async with make_exporter("otlp_http", endpoint=f"http://localhost:{port}") as exporter:
        with pytest.raises(Retryable, match="Cannot connect"):
            await exporter.send(make_batch())


def partial(encoding: str, rejected: int, message: str) -> web.Response:
    if encoding == "json":
        return web.json_response({"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": message}})
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = message
    return web.Response(body=response.SerializeToString(), content_type="application/x-protobuf")


@pytest.mark.parametrize("encoding", ["proto", "json"])
async def test_partial_success_is_counted_told_and_not_repeated(
    caplog: pytest.LogCaptureFixture, encoding: str
) -> None:
    async with (
        http_backend(partial(encoding, 2, "too old"), partial(encoding, 0, "")) as backend,
        make_exporter("otlp_http", endpoint=f"http://localhost:{backend.port}", encoding=encoding) as exporter,
    ):
        assert [await exporter.send(make_batch(5)) for _ in range(2)] == [2, 0]
    told = [record.message for record in caplog.records if record.name == "podtrail.test"]
    assert told == ["the backend rejected 2 spans: too old"]


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(body=bytes(5 << 20), content_type="application/x-protobuf"),
        web.Response(body=b"\xff\xff", content_type="application/x-protobuf"),
        web.Response(text="[" * 100_000, content_type="application/json"),
        web.Response(text="<html>hello</html>", content_type="text/html"),
        web.Response(text='{"partialSuccess": 7}', content_type="application/json"),
    ],
    ids=["more than 4 MiB", "garbage", "deep JSON", "HTML", "JSON of another shape"],
)
async def test_a_success_is_a_success_whatever_its_body(answer: web.Response) -> None:
    async with (
        http_backend(answer) as backend,
        make_exporter("otlp_http", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        assert await exporter.send(make_batch()) == 0
        assert await exporter.send(make_batch()) == 0


async def test_goes_through_the_proxy_that_is_configured_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_backend() as proxy, http_backend() as backend:
        monkeypatch.setenv("http_proxy", f"http://localhost:{proxy.port}")
        url = f"http://localhost:{backend.port}"
        async with make_exporter("otlp_http", endpoint=url) as exporter:
            await exporter.send(make_batch())
        assert (len(proxy.requests), len(backend.requests)) == (0, 1)
        proxied = {"endpoint": "http://backend.invalid", "proxy_url": f"http://localhost:{proxy.port}"}
        async with make_exporter("otlp_http", **proxied) as exporter:
            await exporter.send(make_batch())
        assert proxy.headers[0]["host"] == "backend.invalid"


def server_context(certificates: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    context.load_verify_locations(certificates.ca)
    return context


@pytest.mark.parametrize(
    ("tls", "works"),
    [
        ({"ca": True}, True),
        ({"ca": True, "own": True}, True),
        ({"insecure_skip_verify": True}, True),
        ({"ca": True, "server_name_override": "localhost"}, True),
        ({"ca": True, "server_name_override": "elsewhere"}, False),
        ({"ca": True, "min_version": "1.3"}, False),
        ({}, False),
    ],
    ids=str,
)
async def test_tls_as_configured(certificates: Any, tls: dict[str, Any], works: bool) -> None:
    context = server_context(certificates)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    settings = {key: value for key, value in tls.items() if key not in ("ca", "own")}
    if "ca" in tls:
        settings["ca_file"] = str(certificates.ca)
    if "own" in tls:
        context.verify_mode = ssl.CERT_REQUIRED
        settings |= {"cert_file": str(certificates.certificate), "key_file": str(certificates.key)}

    async with (
        http_backend(ssl_context=context) as backend,
        make_exporter("otlp_http", endpoint=f"https://localhost:{backend.port}", tls=settings) as exporter,
    ):
        if works:
            await exporter.send(make_batch())
        else:
            with pytest.raises(Retryable, match=r"Client.*Error"):
                await exporter.send(make_batch())
        assert len(backend.requests) == int(works)


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        ({"ca_file": "/nowhere/ca.pem"}, "ca_file: can't read /nowhere/ca.pem: No such file or directory"),
        ({"ca_pem": "hello"}, "ca_pem holds no certificate"),
        ({"cert_pem": "hello", "key_pem": "hello"}, "certificate and key are not usable"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(tls: dict[str, str], expected: str) -> None:
    async def main() -> None:
        async with make_exporter("otlp_http", endpoint="https://localhost:4318", tls=tls):
            raise AssertionError("started")

    with pytest.raises(StartError, match=expected):
        asyncio.run(main())


async def test_writes_json_that_is_json() -> None:
    async with http_backend() as backend:
        settings = {"endpoint": f"http://localhost:{backend.port}", "encoding": "json", "compression": "none"}
        async with make_exporter("otlp_http", **settings) as exporter:
            await exporter.send(make_batch(1))
        (resource,) = json.loads(backend.requests[0])["resourceSpans"]
        assert resource["scopeSpans"][0]["spans"][0]["traceId"] == "0" * 31 + "1"
