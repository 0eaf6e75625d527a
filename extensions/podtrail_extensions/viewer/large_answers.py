"""Large answers, of which only so many bytes wait at once for those who asked: who reads slowly fills no memory."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

_LARGE: Final = 1 << 20
"""Bytes: of smaller answers all connections together hold little."""
_MOST: Final = 64 << 20
"""Bytes on their way at once; one answer alone may be larger."""
_STUCK: Final = 60.0
"""Seconds that a client may take for one, until it is let go."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def large_answers() -> Middleware:
    """Return a middleware that counts what is on its way, and has others come again where that is too much."""
    on_their_way = 0

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal on_their_way
        response = await handler(request)
        size = response.content_length or 0
        if size < _LARGE or response.prepared:
            return response
        if on_their_way and on_their_way + size > _MOST:
            words = "Large answers are on their way to others, who read them slowly: try again later."
            return web.json_response({"error": words}, status=503, headers={hdrs.RETRY_AFTER: "10"})
        on_their_way += size
        try:
            async with asyncio.timeout(_STUCK):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, ConnectionError):  # who asked reads nothing, or has gone
            if request.transport is not None:
                request.transport.abort()
        finally:
            on_their_way -= size
        return response

    return serve
