"""Asks whoever looks at a page for credentials, where the page can be reached from other machines."""

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from podtrail.transport.admission import Admission
from podtrail.transport.caller import http_caller
from podtrail.transport.status import RequestError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def login(admission: Admission) -> Middleware:
    """Return a middleware that lets those through whom `admission` lets in; a browser asks its user by itself."""

    @web.middleware
    async def ask(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await admission.admit(http_caller(request))
        except RequestError as error:
            response = web.Response(status=error.http_status, text=f"{error.message}\n")
            if error.challenge is not None:
                response.headers[hdrs.WWW_AUTHENTICATE] = error.challenge
            return response
        return await handler(request)

    return ask
