"""OTLP over HTTP: POST of protobuf or JSON to one path, every error a google.rpc.Status in the request's encoding."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, cast

from aiohttp import hdrs, web

from podtrail.config.types import SECOND, TlsServerSettings
from podtrail.transport.admission import Admission
from podtrail.transport.caller import http_caller
from podtrail.transport.client_limits import Charge
from podtrail.transport.cors import cors_headers, preflight_headers
from podtrail.transport.http_protocol import Protocol, error_response, request_encoding
from podtrail.transport.incoming_request import IncomingRequest
from podtrail.transport.inflate import inflate
from podtrail.transport.listen import AT_ONCE, bind, widen
from podtrail.transport.settings import HttpServerSettings
from podtrail.transport.status import Export, Failed, RequestError, RpcCode
from podtrail.transport.tls_handshake import FailedHandshake, Handshakes
from podtrail.transport.tls_server import ServerCertificates, ServerContext, ssl_context

_CODINGS = {
    "": "",
    "identity": "",
    "gzip": "gzip",
    "x-gzip": "gzip",
    "deflate": "deflate",
    "zlib": "deflate",
    "zstd": "zstd",
    "snappy": "snappy",
    "x-snappy-framed": "x-snappy-framed",
    "lz4": "lz4",
}
_no_access_log = logging.getLogger(f"{__name__}.access")
_no_access_log.disabled = True
_AT_LEAST = 0.01
"""Seconds: to aiohttp no grace at all is one without end."""
_LINGER = 5.0
"""Seconds for which the rest of a refused body is read, so that its sender gets to see the answer."""


class HttpServer:
    """Listens from entering on, serves from `start` to `stop`."""

    def __init__(
        self,
        settings: HttpServerSettings,
        export: Export,
        failed: Failed,
        receiving: Callable[[], IncomingRequest] = IncomingRequest,
        admission: Admission | None = None,
        failed_handshake: FailedHandshake = lambda _peer, _failure: None,
    ) -> None:
        self._settings = settings
        self._failed_handshake = failed_handshake
        self._handshakes: Handshakes | None = None
        self._admission = admission if admission is not None and admission.asks else None
        self._export = export
        self._failed = failed
        self._receiving = receiving
        self._codings = {_CODINGS[name] for name in settings.compression_algorithms}
        self._listeners: list[tuple[socket.socket, asyncio.Server]] = []
        self._connections: web.Server | None = None
        self._certificates: ServerCertificates | None = None
        self.endpoint = settings.endpoint
        """Where it listens; with the port that the system chose when that of the settings is 0."""

    async def __aenter__(self) -> Self:
        """Bind. StartError when that is not possible."""
        tls = self._settings.tls
        context = self._certified(tls) if tls is not None else None
        loop = asyncio.get_running_loop()
        connections = web.Server(self._handle, handler_cancellation=True)
        idle_timeout = self._settings.idle_timeout / SECOND

        def protocol() -> Protocol:
            return Protocol(
                connections,
                self._failed,
                room=self._room,
                loop=loop,
                keepalive_timeout=idle_timeout,
                lingering_time=_LINGER,
                auto_decompress=False,
                access_log=_no_access_log,
            )

        if context is not None:
            self._handshakes = Handshakes(context, protocol, self._failed_handshake, self._room_beside)
        for listener in bind(self._settings.endpoint):
            port = listener.getsockname()[1]
            server = await loop.create_server(
                self._handshakes or protocol,
                sock=listener,
                backlog=AT_ONCE,
                start_serving=False,
            )
            self._listeners.append((listener, server))
        self.endpoint = f"{self._settings.endpoint.rpartition(':')[0]}:{port}"
        self._connections = connections
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(0)

    async def start(self) -> None:
        """Begin to serve."""
        for listener, server in self._listeners:
            await server.start_serving()
            widen(listener)

    async def stop(self, grace: float) -> None:
        """Take no new requests and give those under way `grace` seconds."""
        for _, server in self._listeners:
            server.close()
        self._listeners.clear()
        if self._handshakes is not None:
            await self._handshakes.close()
        if self._connections is not None:
            self._connections.pre_shutdown()
            await self._connections.shutdown(max(grace, _AT_LEAST))
            self._connections = None

    def _room(self) -> bool:
        """Tell whether a connection that has just been made may stay."""
        assert self._connections is not None
        most = self._settings.max_connections
        return not most or len(self._connections.connections) <= most

    def _room_beside(self, handshakes: int) -> bool:
        """Tell whether so many connections may be at their handshake."""
        assert self._connections is not None
        most = self._settings.max_connections
        return not most or len(self._connections.connections) + handshakes <= most

    def _certified(self, tls: TlsServerSettings) -> ServerContext:
        """Return the context of new connections, each of which gets the certificates and authorities of its time."""
        certificates = self._certificates = ServerCertificates(tls)

        def choose(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            certificates.look()
            connection.context = certificates.context

        # A context that has served forgets no authority: a new one takes its place, which TLS allows for the sake of
        # several names on one address.
        first = ssl_context(tls)
        first.sni_callback = choose
        return first

    def _is_outdated(self, request: web.BaseRequest) -> bool:
        """Tell whether the client was checked by authorities that have changed since."""
        certificates = self._certificates
        if certificates is None or not self._settings.demands_certificates or request.transport is None:
            return False
        certificates.look()
        connection = request.transport.get_extra_info("ssl_object")
        made_by = connection.context
        assert isinstance(made_by, ServerContext)
        return made_by.generation != certificates.generation or (
            certificates.generation > 0 and connection.session_reused
        )

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        response: web.Response
        try:
            response = await self._answer(request)
        except RequestError as error:
            self._failed(error)
            response = error_response(request, error)
            if error.closes:
                response.force_close()
            if error.http_status == 405:
                response.headers[hdrs.ALLOW] = "POST, OPTIONS"
            elif error.http_status == 415:
                response.headers[hdrs.ACCEPT_ENCODING] = ", ".join(sorted(self._codings - {""})) or "identity"
        for name, value in cors_headers(self._settings.cors, request.headers.get(hdrs.ORIGIN)).items():
            response.headers.setdefault(name, value)
        return response

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.path != self._settings.traces_url_path:
            message = f"nothing here; traces go to {self._settings.traces_url_path}"
            raise RequestError(RpcCode.NOT_FOUND, 404, message, reason="not_found")
        if request.method == hdrs.METH_OPTIONS:
            return web.Response(
                status=204,
                headers={hdrs.ALLOW: "POST, OPTIONS"} | preflight_headers(self._settings.cors, request.headers),
            )
        if request.method != hdrs.METH_POST:
            message = f"{request.method} is not served; send traces with POST"
            raise RequestError(RpcCode.UNIMPLEMENTED, 405, message, reason="method")
        if self._is_outdated(request):
            raise RequestError.outdated()
        protocol = cast("Protocol", request.protocol)
        charge = await self._admitted(request, protocol) if self._admission is not None else None
        encoding = request_encoding(request)
        if encoding is None:
            raise RequestError.unsupported(
                f"content type {request.content_type} is not read; application/x-protobuf and application/json are"
            )
        with self._receiving() as receiving:
            receiving.charge = charge
            answer = await self._export(await self._body(request, receiving), encoding, protocol.while_there)
        return web.Response(body=answer, content_type=encoding.value)

    async def _admitted(self, request: web.BaseRequest, protocol: Protocol) -> Charge:
        assert self._admission is not None
        caller = http_caller(request)
        client, charge = await self._admission.admit(caller)
        protocol.ended_by(partial(self._admission.left, (caller.host, caller.port), client))
        return charge

    async def _body(self, request: web.BaseRequest, receiving: IncomingRequest) -> bytes:
        coding = self._coding(request)
        limit = self._settings.max_request_body_size
        if (request.content_length or 0) > limit:
            raise RequestError.too_large(limit)
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        raw = await self._received(request, limit, receiving)
        if not coding:
            return raw
        return await inflate(raw, coding, limit, receiving)

    def _coding(self, request: web.BaseRequest) -> str:
        named = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
        coding = _CODINGS.get(named)
        if coding is None or coding not in self._codings:
            raise RequestError.unsupported(f"content encoding {named!r} is not read")
        return coding

    async def _received(self, request: web.BaseRequest, limit: int, receiving: IncomingRequest) -> bytes:
        pieces: list[bytes] = []
        total = 0
        seconds = self._settings.read_timeout / SECOND
        try:
            async with asyncio.timeout(seconds or None):
                async for piece in request.content.iter_any():
                    total += len(piece)
                    if total > limit:
                        raise RequestError.too_large(limit)
                    receiving.add(len(piece))
                    pieces.append(piece)
        except TimeoutError as error:
            message = f"the request did not arrive within {seconds:g} s"
            raise RequestError(RpcCode.DEADLINE_EXCEEDED, 408, message, reason="timeout") from error
        except ConnectionError as error:
            raise RequestError.cut_off() from error
        except web.RequestPayloadError as error:
            raise RequestError.malformed(f"the body is damaged: {error}") from error
        return b"".join(pieces)
