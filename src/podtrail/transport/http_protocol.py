"""One HTTP connection: errors that come up before or beside the handler are answered in OTLP's form as well."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from aiohttp import web

from podtrail.component import Refused
from podtrail.otlp.response_writing import status, status_json
from podtrail.transport.half_close import HalfClosing
from podtrail.transport.status import Encoding, Failed, RequestError, RpcCode

_log = logging.getLogger(__name__)


def request_encoding(request: web.BaseRequest) -> Encoding | None:
    """Return how a request says it is written; None when that is neither protobuf nor JSON."""
    try:
        return Encoding(request.content_type)
    except ValueError:
        return None


def error_response(request: web.BaseRequest, error: RequestError) -> web.Response:
    """Return an error as google.rpc.Status in the request's encoding; JSON, which anyone can read, when it has none."""
    encoding = request_encoding(request) or Encoding.JSON
    encode = status if encoding is Encoding.PROTOBUF else status_json
    response = web.Response(
        status=error.http_status,
        body=encode(error.code, error.message, error.retry_after),
        content_type=encoding.value,
    )
    if error.challenge is not None:
        response.headers["WWW-Authenticate"] = error.challenge
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, -int(-error.retry_after // 1)))
    return response


class Protocol(HalfClosing):
    """A connection of OTLP: its answers to bytes that are no HTTP, to handlers that fail, to half a close.

    Who closes half of it is refused rather than kept waiting, for who is gone has perhaps sent it again elsewhere.
    """

    __slots__ = ("_failed", "_leave", "_room", "_waiting")

    def __init__(self, manager: web.Server, failed: Failed, room: Callable[[], bool], **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._failed = failed
        self._room = room
        self._leave: Callable[[], None] | None = None
        self._waiting: asyncio.Timeout | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: it stays if there is room for it."""
        super().connection_made(transport)
        if not self._room():
            _log.debug("one connection too many was closed")
            cast("asyncio.Transport", transport).abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended."""
        super().connection_lost(exc)
        if self._leave is not None:
            self._leave()

    def ended_by(self, leave: Callable[[], None]) -> None:
        """Have this called when the connection ends, in place of what was to be called before."""
        self._leave = leave

    def eof_received(self) -> bool:  # type: ignore[override]  # as its base
        """The client sends no more: return whether there is something left to answer."""
        answers = super().eof_received()
        if answers and self._waiting is not None:
            self._waiting.reschedule(0)
        return answers

    @asynccontextmanager
    async def while_there(self) -> AsyncIterator[None]:
        """Let something be waited for until the client sends no more.

        Raises:
            Refused: it ended sending, so that nobody will hear the answer.
        """
        try:
            async with asyncio.timeout(0 if self.ended else None) as self._waiting:
                yield
        except TimeoutError as error:
            raise Refused("there is no room at once, and the client has closed its side of the connection") from error
        finally:
            self._waiting = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what went wrong outside of the handler, and close the connection."""
        if status < 500:
            _log.debug("not HTTP, from %s: %s", request.remote, message)
            error = RequestError(RpcCode.INVALID_ARGUMENT, status, message or "not an HTTP request", reason="malformed")
        else:
            _log.error("request from %s failed", request.remote, exc_info=exc)
            error = RequestError.failed("internal error, podtrail's log says more")
        self._failed(error)
        response = error_response(request, error)
        response.force_close()
        return response
