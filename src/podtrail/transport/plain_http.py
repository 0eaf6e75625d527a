"""The server behind pages, probes and metrics: plain HTTP, without OTLP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from podtrail.transport.half_close import HalfClosing
from podtrail.transport.listen import AT_ONCE, bind, widen


@asynccontextmanager
async def served(runner: web.BaseRunner, endpoint: str) -> AsyncIterator[int]:
    """Serves what `runner` runs at `host:port` while it is entered; yields the port.

    Nothing is access-logged.

    Raises:
        StartError: it can't listen.
    """
    listeners = bind(endpoint)
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        connections = runner.server
        assert connections is not None

        def connection() -> HalfClosing:
            return HalfClosing(connections, loop=loop, access_log=None)

        for listener in listeners:
            server = await loop.create_server(connection, sock=listener, backlog=AT_ONCE)
            stack.callback(server.close)
            widen(listener)
        yield listeners[0].getsockname()[1]
