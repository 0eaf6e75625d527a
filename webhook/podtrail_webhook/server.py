"""The HTTPS server: AdmissionReviews in, answers out, within bounds of connections, bytes and time."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from aiohttp import hdrs, web

from podtrail.transport.half_close import HalfClosing
from podtrail.transport.listen import AT_ONCE, bind, widen
from podtrail_webhook.review import AdmissionRequest, RefusedReview, read_review, refusal
from podtrail_webhook.telemetry import WebhookTelemetry

PATH: Final = "/mutate"
MAX_BODY: Final = 8 << 20
"""Bytes of an AdmissionReview; API servers take objects of 3 MiB, and escape them as JSON."""
MAX_IN_FLIGHT: Final = 64 << 20
"""Bytes of all requests together; more are answered with 503."""
MAX_CONNECTIONS: Final = 1024
READ_SECONDS: Final = 5.0
"""For a request's body to come, and for the first head on a connection: webhooks have 30 s at most."""
IDLE_SECONDS: Final = 300.0
"""For which a connection is kept without requests; API servers close theirs after 90."""
_AT_LEAST: Final = 0.01
"""Seconds: to aiohttp no grace at all is one without end."""
_SILENCE_SECONDS: Final = 60.0
_log = logging.getLogger("podtrail.webhook")

Answer = Callable[[AdmissionRequest, str | None, str | None], bytes]
"""Answers a request that came with these headers, traceparent and tracestate; may raise RefusedReview."""


class WebhookServer:
    """Answers AdmissionReviews on `/mutate`."""

    def __init__(self, answer: Answer, telemetry: WebhookTelemetry) -> None:
        self._answer = answer
        self._telemetry = telemetry
        self._told: dict[str, float] = {}
        self._ending = False
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    @asynccontextmanager
    async def listening(self, endpoint: str, tls: ssl.SSLContext, grace: float) -> AsyncIterator[int]:
        """Serves while it is entered; yields the port.

        Args:
            endpoint: `host:port`.
            tls: Has the certificate; what is loaded into it later holds for later connections.
            grace: Seconds that requests under way get at the end.

        Raises:
            StartError: it can't listen.
        """
        listeners = bind(endpoint)
        loop = asyncio.get_running_loop()
        connections = web.Server(self._handle, handler_cancellation=True)

        def connection() -> _Connection:
            return _Connection(connections, self._telemetry, loop=loop)

        async def stop() -> None:
            # From here on each answer closes its connection. aiohttp's own end would throw away what still comes of
            # bodies, so it has to wait for those who send one.
            self._ending = True
            end = loop.time() + grace
            with suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await self._all_answered.wait()
            connections.pre_shutdown()
            await connections.shutdown(max(end - loop.time(), _AT_LEAST))

        async with AsyncExitStack() as stack:
            stack.push_async_callback(stop)
            for listener in listeners:
                server = await loop.create_server(
                    connection, sock=listener, ssl=tls, backlog=AT_ONCE, ssl_handshake_timeout=READ_SECONDS
                )
                stack.callback(server.close)
                widen(listener)
            yield listeners[0].getsockname()[1]

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        self._telemetry.requests_in_flight += 1
        self._all_answered.clear()
        try:
            response = await self._respond(request)
        finally:
            self._telemetry.requests_in_flight -= 1
            if not self._telemetry.requests_in_flight:
                self._all_answered.set()
        if self._ending:
            response.force_close()
        return response

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        began = time.perf_counter()
        try:
            _check_head(request)
            body = await self._body(request)
            review = read_review(body)
            states = request.headers.getall("tracestate", ())
            answer = self._answer(review, request.headers.get("traceparent"), ",".join(states) or None)
        except RefusedReview as refused:
            self._telemetry.refused(refused.reason)
            self._tell(request, refused)
            return error_response(refused)
        self._telemetry.took(time.perf_counter() - began)
        return web.Response(body=answer, content_type="application/json")

    def _tell(self, request: web.BaseRequest, refused: RefusedReview) -> None:
        """Logs a refusal, of each reason one in a while."""
        now = time.monotonic()
        if now >= self._told.get(refused.reason, 0.0) + _SILENCE_SECONDS:
            self._told[refused.reason] = now
            _log.warning("refused a request from %s: %s", request.remote, refused)

    async def _body(self, request: web.BaseRequest) -> bytes:
        """The whole body.

        Raises:
            RefusedReview: it is too large, too slow, damaged, or there is no room for it.
        """
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for piece in request.content.iter_any():
                    size += len(piece)
                    self._telemetry.bytes_in_flight += len(piece)
                    if size > MAX_BODY:
                        raise _too_large()
                    if self._telemetry.bytes_in_flight > MAX_IN_FLIGHT:
                        raise RefusedReview(503, "overloaded", "too much is being read at once; come again")
                    pieces.append(piece)
        except TimeoutError as error:
            raise RefusedReview(408, "timeout", f"the body did not arrive within {READ_SECONDS:g} s") from error
        except (ConnectionError, web.RequestPayloadError) as error:
            raise RefusedReview(400, "cut_off", f"the body ended too early: {error}") from error
        finally:
            self._telemetry.bytes_in_flight -= size
        return b"".join(pieces)


class _Connection(HalfClosing):
    """A connection that is refused beyond so many, and given up where no request comes."""

    __slots__ = ("_counted", "_first_request", "_telemetry")

    def __init__(self, manager: web.Server, telemetry: WebhookTelemetry, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(manager, loop=loop, keepalive_timeout=IDLE_SECONDS, access_log=None, auto_decompress=False)
        self._telemetry = telemetry
        self._counted = False
        self._first_request: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection; one too many is closed."""
        super().connection_made(transport)
        self._counted = True
        self._telemetry.connections += 1
        if self._telemetry.connections > MAX_CONNECTIONS:
            self._telemetry.refused("connections")
            self.force_close()
            return
        self._first_request = self._loop.call_later(READ_SECONDS, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Counts it off."""
        if self._first_request is not None:
            self._first_request.cancel()
        if self._counted:
            self._counted = False
            self._telemetry.connections -= 1
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers what is no HTTP, and what failed; the API server goes by its failurePolicy then."""
        if status < 500:
            refused = RefusedReview(status, "malformed", message or "not an HTTP request")
        else:
            _log.error("a request from %s failed", request.remote, exc_info=exc)
            refused = RefusedReview(500, "failed", "internal error, the webhook's log says more")
        self._telemetry.refused(refused.reason)
        response = error_response(refused)
        response.force_close()
        return response

    def _give_up(self) -> None:
        if not self._request_count:
            self._telemetry.refused("timeout")
            self.force_close()


def error_response(refused: RefusedReview) -> web.Response:
    """The HTTP answer of a refusal."""
    headers: dict[str, Any] = {}
    if refused.status == 405:
        headers[hdrs.ALLOW] = "POST"
    return web.Response(status=refused.status, body=refusal(refused), content_type="application/json", headers=headers)


def _check_head(request: web.BaseRequest) -> None:
    """Raises RefusedReview where the head alone says that this is no AdmissionReview."""
    if request.path != PATH:
        raise RefusedReview(404, "not_found", f"nothing here; AdmissionReviews go to {PATH}")
    if request.method != hdrs.METH_POST:
        raise RefusedReview(405, "method", f"{request.method} is not served; send AdmissionReviews with POST")
    if request.content_type != "application/json":
        raise RefusedReview(415, "unsupported", f"content type {request.content_type:.80}, not application/json")
    coding = request.headers.get(hdrs.CONTENT_ENCODING, "identity")
    if coding != "identity":
        raise RefusedReview(415, "unsupported", f"content encoding {coding:.80} is not read; send plain JSON")
    if (request.content_length or 0) > MAX_BODY:
        raise _too_large()


def _too_large() -> RefusedReview:
    return RefusedReview(413, "too_large", f"the body is larger than {MAX_BODY} bytes")
