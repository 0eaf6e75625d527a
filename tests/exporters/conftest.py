"""Backends that answer from a script, and spans to send them."""

import asyncio
import logging
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.component import Context
from podtrail.component.registry import find
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header


def make_batch(spans: int = 2, *, groups: int = 1, name: str = "Filter") -> Batch:
    """Return a batch of so many spans in so many groups."""

    def group(at: int) -> Group:
        trace_id = (at + 1).to_bytes(16, "big")
        raw = [
            encode_span(trace_id=trace_id, span_id=(i + 1).to_bytes(8, "big"), name=name, start=1, end=2)
            for i in range(spans)
        ]
        resource, scope = resource_header({"service.name": "kube-scheduler"}), scope_header("scheduler")
        return Group(resource, scope, trace_id, frame(raw), spans)

    return Batch([group(at) for at in range(groups)], arrived=0)


def make_exporter(type_name: str, **config: Any) -> Any:
    """Return an exporter as the registry makes it."""
    factory = find("exporter", type_name)
    assert factory is not None
    log = logging.LoggerAdapter(logging.getLogger("podtrail.test"))
    return factory.create(factory.Config.model_validate(config), Context(id=type_name, log=log))


@dataclass(frozen=True)
class Say:
    """A gRPC answer other than success."""

    code: grpc.StatusCode
    details: str = ""
    trailers: Sequence[tuple[str, bytes]] = ()


@dataclass
class GrpcBackend:
    """Answers each request with the next of its script, then with success."""

    script: list[Any] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0

    async def export(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata() or ()))
        answer = self.script.pop(0) if self.script else b""
        if isinstance(answer, bytes):
            return answer
        if answer is None:
            await asyncio.Event().wait()
        context.set_trailing_metadata(tuple(answer.trailers))
        await context.abort(answer.code, answer.details)
        raise AssertionError("abort raises")

    def spans(self) -> list[int]:
        """How many spans each request held."""
        return [
            sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
            for request in map(ExportTraceServiceRequest.FromString, self.requests)
        ]


@asynccontextmanager
async def grpc_backend(
    *script: Any, credentials: grpc.ServerCredentials | None = None, address: str = "localhost:0"
) -> AsyncIterator[GrpcBackend]:
    """A gRPC server on a free port, or on the given address."""
    backend = GrpcBackend(list(script))
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20), ("grpc.so_reuseport", 0)])
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(backend.export)
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
    if credentials is None:
        backend.port = server.add_insecure_port(address)
    else:
        backend.port = server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield backend
    finally:
        await server.stop(None)


@dataclass
class HttpBackend:
    """Answers each request with the next of its script, then with 200; None: closes the connection without a word."""

    script: list[Any] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0

    async def post(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.read())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.paths.append(request.path)
        answer = self.script.pop(0) if self.script else web.Response(content_type="application/x-protobuf")
        if answer is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        assert isinstance(answer, web.StreamResponse)
        return answer


@asynccontextmanager
async def http_backend(*script: Any, ssl_context: Any = None) -> AsyncIterator[HttpBackend]:
    """An HTTP server on a free port."""
    backend = HttpBackend(list(script))
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{tail:.*}", backend.post)
    runner = web.AppRunner(app, auto_decompress=False)
    await runner.setup()
    site = web.TCPSite(runner, "localhost", 0, ssl_context=ssl_context)
    await site.start()
    backend.port = runner.addresses[0][1]
    try:
        yield backend
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Certificates:
    """Paths of an authority and of what it signed for localhost."""

    ca: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority and a certificate for localhost, good for server and client."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl, which makes the certificates")
    at = tmp_path_factory.mktemp("certificates")
    extensions = at / "extensions"
    extensions.write_text("subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=at, check=True, capture_output=True)

    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test CA")
    openssl("req", *ec, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost")
    openssl(
        "x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-out", "certificate.pem", "-days", "2", "-extfile", "extensions",
    )  # fmt: skip
    return Certificates(at / "ca.pem", at / "certificate.pem", at / "key.pem")
