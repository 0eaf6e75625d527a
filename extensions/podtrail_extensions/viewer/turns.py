"""Who looks waits for his turn: a crowd of answers, each of some milliseconds, does not keep the receivers' loop.

The loop would work off all that is ready, hundreds of answers, before it looks at a receiver's socket again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

_AT_ONCE: Final = ("/api/v1/live", "/api/v1/tap", "/api/v1/record", "/api/v1/changes", "/static/")
"""Streams, which have bounds of their own, and what takes no time."""
_REPORTS: Final = ("/incident", "/api/v1/incident")
_FILES: Final = (".json", "/report.md", "/report.html")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def turns() -> Middleware:
    """Return a middleware, to stand behind those that ask who is there: pages one by one, and reports one by one."""
    pages, reports = asyncio.Lock(), asyncio.Lock()

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.path
        if path.startswith(_AT_ONCE):
            return await handler(request)
        # A report may take a second of a thread: pages do not wait for it.
        async with reports if path.startswith(_REPORTS) or path.endswith(_FILES) else pages:
            await asyncio.sleep(0)  # what has come to the loop meanwhile is first
            return await handler(request)

    return serve
