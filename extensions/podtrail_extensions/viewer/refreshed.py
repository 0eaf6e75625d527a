"""Pages that are fetched anew by those who watch them: all who watch the same one within a second share it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from podtrail.lru import Lru

HEADER: Final = "Podtrail-Refresh"
"""What live.js sends along. A page that somebody opens is always made for him."""
_AGE: Final = 1.0
"""Seconds that a page is as good as new: it says itself of which change it is, and is fetched once more for a later."""
_MOST: Final = 16
_LONGEST: Final = 256 << 10
"""Characters of a page; one of more is seldom watched by many."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def refreshed() -> Middleware:
    """Return a middleware, to stand behind those that ask who is there."""
    held: Lru[str, tuple[float, str]] = Lru(_MOST)

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        if HEADER not in request.headers or request.method != hdrs.METH_GET:
            return await handler(request)
        now = asyncio.get_running_loop().time()
        made, text = held.get(request.path_qs) or (now - _AGE, "")
        if now - made < _AGE:
            return web.Response(text=text, content_type="text/html")
        answer = await handler(request)
        if isinstance(answer, web.Response) and answer.status == 200 and answer.content_type == "text/html":
            text = answer.text or ""
            if len(text) <= _LONGEST:
                held.put(request.path_qs, (now, text))
        return answer

    return serve
