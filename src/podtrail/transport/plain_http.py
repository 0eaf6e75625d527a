"""The server behind pages, probes and metrics: plain HTTP, without OTLP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from podtrail.transport.half_close import HalfClosing
from podtrail.transport.listen import AT_ONCE, bind, widen

_HEAD_SECONDS: Final = 75.0
"""For the head of a request to come, and between two of them; aiohttp would wait for an hour."""
_LONGEST_LINE: Final = 32_768
"""Bytes of an address: with fewer, as aiohttp has them, the page could not say what is wrong with a long one."""
_MOST, _MOST_OF_ONE = 1_000, 100
"""Connections at once, in all and of one address. One more closes the oldest that is idle."""


class _Visit(HalfClosing):
    """A connection. Without room the oldest idle one leaves, so that probes are answered whoever else connects."""

    __slots__ = ("_address", "_open")

    def __init__(
        self, manager: web.Server, loop: asyncio.AbstractEventLoop, connections: "dict[str, dict[_Visit, None]]"
    ) -> None:
        super().__init__(
            manager, loop=loop, keepalive_timeout=_HEAD_SECONDS, access_log=None, max_line_size=_LONGEST_LINE
        )
        self._open = connections
        self._address = ""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what can't be served; of what is too long in words of ours, and without it."""
        if isinstance(exc, LineTooLong):
            message = f"The address or a header is too long: {_LONGEST_LINE:,} bytes are the most."
        return super().handle_error(request, status, exc, message)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stays if there is room for it, or an idle one can leave."""
        super().connection_made(transport)
        self._address = str((transport.get_extra_info("peername") or ("",))[0])
        mine = self._open.setdefault(self._address, {})
        others = mine
        if len(mine) < _MOST_OF_ONE:
            total = sum(map(len, self._open.values()))
            # Of all addresses the one with the most connections makes room.
            others = max(self._open.values(), key=len) if total >= _MOST else {}
        mine[self] = None
        if others:
            leaving = next((visit for visit in others if visit.idle and visit is not self), self)
            cast("asyncio.Transport", leaving.transport).abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """It makes room."""
        super().connection_lost(exc)
        mine = self._open[self._address]
        del mine[self]
        if not mine:
            del self._open[self._address]


@asynccontextmanager
async def served(runner: web.BaseRunner, endpoint: str) -> AsyncIterator[int]:
    """Serves what `runner` runs at `host:port` while it is entered; yields the port.

    Nothing is access-logged.

    Raises:
        StartError: it can't listen.
    """
    listeners = bind(endpoint)
    loop = asyncio.get_running_loop()
    open_connections: dict[str, dict[_Visit, None]] = {}
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        connections = runner.server
        assert connections is not None

        def connection() -> HalfClosing:
            return _Visit(connections, loop, open_connections)

        for listener in listeners:
            server = await loop.create_server(connection, sock=listener, backlog=AT_ONCE)
            stack.callback(server.close)
            widen(listener)
        yield listeners[0].getsockname()[1]
