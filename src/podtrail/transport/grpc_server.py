"""OTLP over gRPC: one method on the event loop, raw bytes in and out.

Messages are decompressed here and not in grpcio, which can't stop at a limit, knows no multi-member gzip, and answers
damage with a retryable-looking INTERNAL. It tells nobody which coding a message came in, but a serialized request
can't begin like a gzip header (wire type 7 does not exist).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from podtrail.component import StartError
from podtrail.config.types import MILLISECOND, MINUTE, KeepaliveServerSettings, TlsServerSettings, host_port
from podtrail.otlp.response_writing import retry_info, status
from podtrail.transport.admission import Admission
from podtrail.transport.caller import grpc_caller
from podtrail.transport.incoming_request import IncomingRequest
from podtrail.transport.inflate import inflate
from podtrail.transport.listen import bind
from podtrail.transport.settings import GrpcServerSettings
from podtrail.transport.status import Encoding, Export, Failed, RequestError, RpcCode
from podtrail.transport.tls_server import ServerCertificates, ServerPems

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
METHOD = "Export"

_log = logging.getLogger(__name__)
_STATUS = {code.value[0]: code for code in grpc.StatusCode}
_GZIP_MAGIC = b"\x1f\x8b"
_ZLIB_CMF = 0x78

_TRIES, _PAUSE = 100, 0.01
_MESSAGE_SECONDS = 60.0
"""For the message of a call to arrive."""
_HANDSHAKE_MS = 20_000
"""For TLS and the first frames of a connection; gRPC's own default is two minutes."""
_LONGEST_TRUST = 5 * MINUTE
_CANCELLATION_SECONDS = 0.1
"""In which a cancellation follows a message that will not come, if there is one."""


class GrpcServer:
    """Listens from entering on, serves from `start` to `stop`."""

    def __init__(
        self,
        settings: GrpcServerSettings,
        export: Export,
        failed: Failed,
        receiving: Callable[[], IncomingRequest] = IncomingRequest,
        admission: Admission | None = None,
    ) -> None:
        self._settings = settings
        self._admission = admission if admission is not None and admission.asks else None
        self._export = export
        self._failed = failed
        self._receiving = receiving
        self._server: grpc.aio.Server | None = None
        self._started = False
        self.endpoint = settings.endpoint
        """Where it listens; with the port that the system chose when that of the settings is 0."""

    async def __aenter__(self) -> Self:
        """Bind. StartError when that is not possible."""
        # As if the client streamed: of a unary call grpcio reads the message unasked, and does not answer without one.
        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_unary_rpc_method_handler(self._serve)
        server = grpc.aio.server(options=_options(self._settings))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
        self.endpoint = _listen(server, self._settings)
        self._server = server
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(0)

    async def start(self) -> None:
        """Begin to serve."""
        assert self._server is not None
        self._started = True
        await self._server.start()

    async def stop(self, grace: float) -> None:
        """Take no new requests and give those under way `grace` seconds."""
        if self._server is not None:
            if not self._started:
                await self._server.start()  # grpcio lets go of a port only when it stops, and stops only what runs
            await self._server.stop(grace)
            self._server = None
            if self._settings.transport == "tcp":
                await _freed(self.endpoint)

    async def _serve(self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        # grpcio keeps an abort and the frames it passed until the garbage collector comes by: they hold no request.
        answer = await self._answer(context)
        return answer if isinstance(answer, bytes) else await _abort(context, answer)

    async def _answer(self, context: grpc.aio.ServicerContext[Any, Any]) -> bytes | RequestError:
        try:
            with self._receiving() as receiving:
                if self._admission is not None:
                    _, receiving.charge = await self._admission.admit(
                        grpc_caller(context, certified=self._settings.demands_certificates)
                    )
                return await self._export(await self._received(context, receiving), Encoding.PROTOBUF, nullcontext)
        except RequestError as error:
            self._failed(error)
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        except Exception:  # noqa: BLE001 - grpcio would answer UNKNOWN and tell nobody
            _log.exception("a request failed")
            return RequestError.failed("internal error, podtrail's log says more")

    async def _received(self, context: grpc.aio.ServicerContext[Any, Any], receiving: IncomingRequest) -> bytes:
        receiving.add(0)  # a message that nobody has room for is not even read
        try:
            raw = await self._message(context)
        except asyncio.CancelledError:
            self._failed(RequestError.cut_off())
            raise
        receiving.add(len(raw))
        if raw[:1] in (b"\x1f", b"\x78"):
            return await _decompressed(raw, self._settings.limit, receiving)
        return raw

    async def _message(self, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        try:
            async with asyncio.timeout(_MESSAGE_SECONDS):
                raw = await context.read()
        except TimeoutError as error:
            message = f"no message came within {_MESSAGE_SECONDS:g} s"
            raise RequestError(RpcCode.DEADLINE_EXCEEDED, 408, message, reason="timeout") from error
        if isinstance(raw, bytes):
            return raw
        # No message comes either when the call is cancelled (too large, client gone), of which grpcio tells only now.
        await asyncio.sleep(_CANCELLATION_SECONDS)
        raise RequestError(RpcCode.INTERNAL, 400, "the call ended without a message; it takes one", reason="no_message")


async def _decompressed(raw: bytes, limit: int, receiving: IncomingRequest) -> bytes:
    if raw.startswith(_GZIP_MAGIC):
        encoding = "gzip"
    elif raw[0] == _ZLIB_CMF and int.from_bytes(raw[:2], "big") % 31 == 0:
        encoding = "deflate"
    else:
        return raw
    return await inflate(raw, encoding, limit, receiving)


async def _abort(context: grpc.aio.ServicerContext[Any, Any], error: RequestError) -> bytes:
    trailers: list[tuple[str, str | bytes]] = [
        ("grpc-status-details-bin", status(error.code, error.message, error.retry_after))
    ]
    if error.retry_after is not None:
        # The Python SDK looks for the delay here, the others in the status details.
        trailers.append(("google.rpc.retryinfo-bin", retry_info(error.retry_after)))
    await context.abort(_STATUS[error.code], error.message, tuple(trailers))
    return b""


def _options(settings: GrpcServerSettings) -> Sequence[tuple[str, Any]]:
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", settings.limit),
        ("grpc.per_message_decompression", 0),
        # Otherwise a second server would share the port in silence, and every other connection would go there.
        ("grpc.so_reuseport", 0),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
    ]
    if settings.max_connections:
        options.append(("grpc.max_allowed_incoming_connections", settings.max_connections))
    if settings.max_concurrent_streams:
        options.append(("grpc.max_concurrent_streams", settings.max_concurrent_streams))
    if settings.keepalive is not None:
        options += _keepalive(settings.keepalive)
    if (age := _longest_trust(settings)) and "grpc.max_connection_age_ms" not in dict(options):
        options.append(("grpc.max_connection_age_ms", age // MILLISECOND))
    return options


def _longest_trust(settings: GrpcServerSettings) -> int:
    """Return how long a connection may last, so that its client is checked by authorities that have changed; 0: ever.

    gRPC's library ends no single connection.
    """
    tls = settings.tls
    if tls is None or tls.client_ca_file is None:
        return 0
    if tls.client_ca_file_reload:
        return _LONGEST_TRUST
    return min(tls.reload_interval, _LONGEST_TRUST)


def _keepalive(settings: KeepaliveServerSettings) -> list[tuple[str, Any]]:
    server, policy = settings.server_parameters, settings.enforcement_policy
    times = {
        "grpc.max_connection_idle_ms": server.max_connection_idle,
        "grpc.max_connection_age_ms": server.max_connection_age,
        "grpc.max_connection_age_grace_ms": server.max_connection_age_grace,
        "grpc.keepalive_time_ms": server.time,
        "grpc.keepalive_timeout_ms": server.timeout,
        "grpc.http2.min_ping_interval_without_data_ms": policy.min_time,
    }
    options: list[tuple[str, Any]] = [
        (name, min(-(-value // MILLISECOND), 2**31 - 1)) for name, value in times.items() if value
    ]
    return [*options, ("grpc.keepalive_permit_without_calls", int(policy.permit_without_stream))]


def _listen(server: grpc.aio.Server, settings: GrpcServerSettings) -> str:
    if settings.transport == "unix":
        address = f"unix:{settings.endpoint}"
    else:
        host, port = host_port(settings.endpoint)
        if port:
            # grpcio does not say why it can't bind; the system does.
            for probe in bind(settings.endpoint):
                probe.close()
        address = f"{f'[{host}]' if ':' in host else host or '[::]'}:{port}"
    try:
        if settings.tls is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, _credentials(settings.tls))
    except RuntimeError as error:
        raise StartError(f"can't listen on {settings.endpoint}: {error}") from error
    return settings.endpoint if settings.transport == "unix" else f"{settings.endpoint.rpartition(':')[0]}:{bound}"


async def _freed(endpoint: str) -> None:
    """Wait until a stopped server has let go of its port, which grpcio does a few milliseconds later in a thread."""
    for _ in range(_TRIES):
        try:
            for probe in bind(endpoint):
                probe.close()
        except StartError:
            await asyncio.sleep(_PAUSE)
        else:
            return


def _credentials(settings: TlsServerSettings) -> grpc.ServerCredentials:
    certificates = ServerCertificates(settings)
    pems = certificates.pems
    if not settings.reload_interval and not settings.client_ca_file_reload:
        return grpc.ssl_server_credentials(
            [(pems.key, pems.certificate)],
            pems.client_authorities,
            require_client_auth=pems.client_authorities is not None,
        )

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        """Return what new connections are to be served with; None: the same as before."""
        return _configuration(certificates.pems) if certificates.look() else None

    return grpc.dynamic_ssl_server_credentials(
        _configuration(pems),
        renewed,  # type: ignore[arg-type]  # None is documented, but not in the stubs
        require_client_authentication=pems.client_authorities is not None,
    )


def _configuration(pems: ServerPems) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pems.key, pems.certificate)], pems.client_authorities)
