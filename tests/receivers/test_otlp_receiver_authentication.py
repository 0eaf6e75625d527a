"""Who may send to the `otlp` receiver: credentials, over gRPC and HTTP, with the SDK's exporters and without."""

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from podtrail_receivers.otlp import FACTORY
from pydantic import ValidationError

from podtrail.component import Context, Refused
from podtrail.component.registry import find
from podtrail.transport.settings import GrpcServerSettings

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 120.0
MISMATCH = "provided authorization does not match expected scheme or token"
ASKS = {"auth": {"authenticator": "bearertokenauth"}}


@asynccontextmanager
async def authenticator(type_name: str = "bearertokenauth", **config: Any) -> AsyncIterator[dict[str, Any]]:
    factory = find("extension", type_name)
    assert factory is not None
    async with factory.create(factory.Config.model_validate(config), Context(id=type_name)) as extension:
        yield {type_name: extension}


async def call(endpoint: str, body: bytes, authorization: str | None) -> tuple[str, str]:
    """Send over gRPC; return the status' name and its words."""
    metadata = () if authorization is None else (("authorization", authorization),)
    async with grpc.aio.insecure_channel(endpoint) as channel:
        method: Any = channel.unary_unary(METHOD)
        try:
            await method(body, timeout=DEADLINE, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return error.code().name, error.details() or ""
    return "OK", ""


async def post(endpoint: str, body: bytes, authorization: str | None) -> tuple[int, str, str]:
    """Send over HTTP; return status, words and challenge."""
    headers = {"content-type": "application/x-protobuf"}
    if authorization is not None:
        headers["Authorization"] = authorization
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://{endpoint}/v1/traces", data=body, headers=headers) as answer,
    ):
        content = await answer.read()
        words = Status.FromString(content).message if answer.status != 200 else ""
        return answer.status, words, answer.headers.get("WWW-Authenticate", "")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_the_sdk_is_let_in_with_the_token_and_refused_without(serving: Any, protocol: str) -> None:
    def send(endpoint: str, headers: dict[str, str]) -> SpanExportResult:
        memory = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(memory))
        provider.get_tracer("test").start_span("SchedulePod").end()
        exporter: SpanExporter
        if protocol == "grpc":
            exporter = GrpcExporter(f"http://{endpoint}", insecure=True, headers=headers)
        else:
            exporter = HttpExporter(f"http://{endpoint}/v1/traces", headers=headers)
        try:
            return exporter.export(memory.get_finished_spans())
        finally:
            exporter.shutdown()

    async with authenticator(token="s3cret") as ids, serving(authenticators=ids, **{protocol: ASKS}) as served:
        right = {"authorization": "Bearer s3cret"}
        assert await asyncio.to_thread(send, served[protocol], right) is SpanExportResult.SUCCESS
        assert await asyncio.to_thread(send, served[protocol], {}) is SpanExportResult.FAILURE
        assert len(served.spans) == 1
        refused = served.metric("podtrail_receiver_failed_requests_total", transport=protocol, reason="unauthenticated")
        assert refused == 1, "what is UNAUTHENTICATED or 401 is not tried again"


async def test_grpc_answers_unauthenticated_in_the_collectors_words(serving: Any, request_of: Any) -> None:
    body = request_of(1).SerializeToString()

    async with authenticator(token="s3cret") as ids, serving(authenticators=ids, grpc=ASKS) as served:
        missing = "missing or empty authorization header: Authorization"
        assert await call(served["grpc"], body, None) == ("UNAUTHENTICATED", missing)
        assert await call(served["grpc"], body, "Bearer wrong") == ("UNAUTHENTICATED", MISMATCH)
        assert await call(served["grpc"], body, "Bearer s3cret") == ("OK", "")
        assert len(served.spans) == 1


async def test_http_answers_401_with_a_challenge(serving: Any, request_of: Any) -> None:
    body = request_of(1).SerializeToString()

    async with authenticator(token="s3cret") as ids, serving(authenticators=ids, http=ASKS) as served:
        missing = "missing or empty authorization header: Authorization"
        assert await post(served["http"], body, None) == (401, missing, "Bearer")
        assert await post(served["http"], body, "Bearer wrong") == (401, MISMATCH, "Bearer")
        assert await post(served["http"], body, "Bearer s3cret") == (200, "", "")
        assert len(served.spans) == 1


async def test_basic_authentication_names_the_client(serving: Any, request_of: Any) -> None:
    body = request_of(1).SerializeToString()
    asks = {"auth": {"authenticator": "basicauth"}}
    right, wrong = (f"Basic {b64encode(f'agent:{it}'.encode()).decode()}" for it in ("right", "wrong"))

    users = {"inline": "agent:right"}
    async with (
        authenticator("basicauth", htpasswd=users) as ids,
        serving(authenticators=ids, client_limits={"requests_per_second": 0.001}, grpc=asks, http=asks) as served,
    ):
        assert await call(served["grpc"], body, wrong) == ("UNAUTHENTICATED", "invalid credentials")
        assert (await post(served["http"], body, wrong))[::2] == (401, 'Basic realm="podtrail", charset="UTF-8"')
        assert (await call(served["grpc"], body, right))[0] == "OK"
        assert (await post(served["http"], body, right))[0] == 429, "one client, whatever it sends over"
        limited = {"transport": "http", "client": "agent", "limit": "requests_per_second"}
        assert served.metric("podtrail_receiver_limited_requests_total", **limited) == 1


async def test_a_refused_body_is_not_read(serving: Any) -> None:
    async with authenticator(token="s3cret") as ids, serving(authenticators=ids, http=ASKS) as served:
        host, _, port = served["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 10000000\r\nExpect: 100-continue\r\n\r\n"
        )
        async with asyncio.timeout(DEADLINE):
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        writer.close()
        assert served.context.arriving.ever == 0


def test_refusals_are_told_with_the_peer_once_a_minute_and_without_what_was_shown(
    serving: Any, request_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    body = request_of(1).SerializeToString()

    async def main() -> None:
        async with (
            authenticator(token="s3cret") as ids,
            serving(authenticators=ids, http=ASKS, grpc=ASKS) as served,
        ):
            for _ in range(5):
                await post(served["http"], body, "Bearer letmein")
                await call(served["grpc"], body, "Bearer letmein")

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    said = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 2, "one a server"
    for record in said:
        assert record.getMessage().startswith("refused a request from 127.0.0.1:")
        assert record.getMessage().endswith(f": {MISMATCH}")
    assert "letmein" not in caplog.text
    assert "s3cret" not in caplog.text


async def test_what_cannot_be_checked_now_is_to_be_tried_again(serving: Any, request_of: Any) -> None:
    class Busy:
        header, challenge = "authorization", "Basic"

        async def authenticate(self, credentials: str | None, address: str) -> str | None:
            raise Refused("too many passwords are being checked", after=2.0)

    body = request_of(1).SerializeToString()

    async with serving(authenticators={"bearertokenauth": Busy()}, grpc=ASKS, http=ASKS) as served:
        assert (await call(served["grpc"], body, "x"))[0] == "UNAVAILABLE"
        assert (await post(served["http"], body, "x"))[0] == 503


async def test_a_preflight_of_a_browser_shows_no_credentials_and_is_answered(serving: Any) -> None:
    cors = {"cors": {"allowed_origins": ["https://app.example"], "allowed_headers": ["authorization"]}}

    async with (
        authenticator(token="s3cret") as ids,
        serving(authenticators=ids, http=ASKS | cors) as served,
        aiohttp.ClientSession() as session,
    ):
        headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        async with session.options(f"http://{served['http']}/v1/traces", headers=headers) as answer:
            assert answer.status == 204


async def test_a_token_is_taken_from_the_file_as_it_is_now(
    serving: Any, request_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail.transport.followed_file._LOOK_AGAIN", 0)
    file = tmp_path / "token"
    file.write_text("old\n")
    body = request_of(1).SerializeToString()

    async with authenticator(filename=str(file)) as ids, serving(authenticators=ids, grpc=ASKS) as served:
        async with grpc.aio.insecure_channel(served["grpc"]) as channel:
            method: Any = channel.unary_unary(METHOD)
            await method(body, metadata=(("authorization", "Bearer old"),))
            file.write_text("new one\n")
            await method(body, metadata=(("authorization", "Bearer new one"),))
            with pytest.raises(grpc.aio.AioRpcError, match="UNAUTHENTICATED"):
                await method(body, metadata=(("authorization", "Bearer old"),))
        assert len(served.spans) == 2


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("endpoint", ["0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "gateway.example:0"])
def test_an_endpoint_that_others_reach_needs_a_check_or_words_that_it_needs_none(protocol: str, endpoint: str) -> None:
    def read(**settings: Any) -> Any:
        return FACTORY.Config.model_validate({"protocols": {protocol: {"endpoint": endpoint, **settings}}})

    with pytest.raises(ValidationError, match="can be reached from other machines, and whoever reaches it may send"):
        read()
    tls = {"cert_file": "x", "key_file": "y"}
    with pytest.raises(ValidationError, match="can be reached from other machines"):
        read(tls=tls)
    for checked in (ASKS, {"tls": tls | {"client_ca_file": "z"}}, {"allow_unauthenticated": True}):
        read(**checked)


@pytest.mark.parametrize("endpoint", ["localhost:0", "127.0.0.1:0", "127.9.9.9:0", "[::1]:0", "LOCALHOST:0"])
def test_loopback_needs_nothing(endpoint: str) -> None:
    assert GrpcServerSettings(endpoint=endpoint).warnings() == []
