"""HTTP connections of which the client closes its half once it has sent its requests. All answers name podtrail."""

from typing import Any

from aiohttp import hdrs, web


class HalfClosing(web.RequestHandler):
    """aiohttp's connection, but for its answer to half a close.

    A client that sends no more may still read, or be gone: TCP can't tell. What it has sent whole is served.
    """

    __slots__ = ("_answered", "ended")

    def __init__(self, manager: web.Server, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._answered = 0
        self.ended = False
        """Whether the client sends no more."""

    @property
    def gone(self) -> bool:
        """Whether nobody listens to a stream any longer: half a connection is no listener's."""
        return self.ended or self.transport is None or self.transport.is_closing()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self._current_request is None

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp never keeps a connection open
        """The client sends no more: return whether there is something left to answer."""
        if self._answered == self._request_count or self.ssl_context is not None:  # TLS knows no half-closed connection
            return False
        self.ended = True
        if self._current_request is not None:
            self._cut_off(self._current_request)
        return True

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer with podtrail's name as `Server`: aiohttp would tell its version and Python's."""
        resp.headers[hdrs.SERVER] = "podtrail"
        return await super().finish_response(request, resp, start_time)

    def _cut_off(self, request: web.BaseRequest) -> None:
        if not request.content.is_eof():
            request.content.set_exception(ConnectionResetError("the client sends no more"))

    async def _handle_request(
        self, request: web.BaseRequest, start_time: float | None, request_handler: Any
    ) -> tuple[web.StreamResponse, bool]:
        if self.ended:
            self._cut_off(request)
        try:
            return await super()._handle_request(request, start_time, request_handler)
        finally:
            self._answered += 1
            if self.ended and not request.content.is_eof():
                request.content.feed_eof()  # aiohttp would read on, to have the answer reach who still sends
            if self.ended and self._answered == self._request_count:
                self.close()
