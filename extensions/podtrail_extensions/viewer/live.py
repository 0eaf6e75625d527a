"""Tells open pages that something has changed: a stream of server-sent events with a number, never the news itself."""

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, cast

from aiohttp import hdrs, web

from podtrail.story import clock
from podtrail.transport.half_close import HalfClosing

_MOST: Final = 64
"""Listeners at once: who comes later is told to come again. A page that nobody sees does not listen."""
_PACE: Final = 1.0
"""Seconds between two looks at the counter, and so at least between two events."""
_BEAT: Final = 15.0
"""Seconds of silence after which a comment is sent: proxies end what is silent for longer, most of them at 60."""
_STUCK: Final = 60.0
"""Seconds that a client may take for one event, until it is let go."""
_QUIET: Final = 5.0
"""Seconds without a change after which a source with a clock of its own is taken to have ended."""
_SEND_BUFFER: Final = 4096
"""Bytes that the system may hold for a client: it is to hear of the latest change, not of all that it has missed."""
_HEADERS: Final = {
    hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",  # nginx, and who does as it does
}


class LiveState(NamedTuple):
    """What there is to be told of."""

    changes: int
    """Another number, other pages."""
    now: int
    """Where the source's clock stands, Unix nanoseconds."""
    live: bool
    """That is the present."""
    silent_since: int
    """Since when nothing has come, Unix nanoseconds of our clock; 0 where that is not long."""


class LiveFeed:
    """Everybody who listens. Nothing is kept for anybody: who is slow hears of the latest change alone."""

    def __init__(self, state: Callable[[], LiveState]) -> None:
        self._state = state
        self._ending = asyncio.Event()
        self._listeners: set[HalfClosing] = set()

    async def end(self, _application: web.Application) -> None:
        """Have all streams end, and no new one begin."""
        self._ending.set()

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Serve a stream until the client is gone, takes nothing any more, or the feed ends."""
        if self._ending.is_set() or not self._has_room():
            words = f"{_MOST} pages are listening already: try again later"
            return web.json_response({"error": words}, status=503, headers={hdrs.RETRY_AFTER: "10"})
        response = web.StreamResponse(headers=_HEADERS)
        response.force_close()
        await response.prepare(request)
        connection = cast("HalfClosing", request.protocol)
        if request.method == hdrs.METH_HEAD or connection.gone:
            return response
        self._listeners.add(connection)
        try:
            with suppress(ConnectionError):  # the client has gone, as it may
                await self._tell(connection, response)
        finally:
            self._listeners.discard(connection)
        return response

    def _has_room(self) -> bool:
        # Who has gone is let go at the next look; whoever comes meanwhile needs its place now.
        self._listeners = {one for one in self._listeners if not one.gone}
        return len(self._listeners) < _MOST

    async def _tell(self, connection: HalfClosing, response: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        transport = cast("asyncio.Transport", connection.transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        told: tuple[int, bool, int] | None = None
        seen, changed, sent = -1, loop.time(), loop.time()
        while not self._ending.is_set() and not connection.gone:
            now, state = loop.time(), self._state()
            if state.changes != seen:
                seen, changed = state.changes, now
            news = (state.changes, not state.live and now - changed >= _QUIET, state.silent_since)
            if transport.get_write_buffer_size():
                if now - sent >= _STUCK:
                    transport.abort()
                    return
            elif news != told:
                await response.write(_event(state, ended=news[1]))
                told, sent = news, now
            elif now - sent >= _BEAT:
                await response.write(b": still here\n\n")
                sent = now
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _PACE)


def _event(state: LiveState, *, ended: bool) -> bytes:
    told = {"changes": state.changes, "asOf": clock(state.now), "live": state.live, "ended": ended}
    told["nothingSince"] = clock(state.silent_since) if state.silent_since else ""
    return f"event: change\ndata: {json.dumps(told)}\n\n".encode()
