"""What the scheduler says over HTTP: /healthz, /livez, /readyz for probes, /metrics for Prometheus."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web

DEFAULT_PORT = 10259

Handler = Callable[[web.Request], Awaitable[web.Response]]

Check = Callable[[], str]
"""Returns what is wrong, empty when nothing is."""


class Serving(NamedTuple):
    """Where to listen; port 0 takes a free one. Without a certificate it is plain HTTP."""

    host: str = ""
    """Empty: every interface, IPv4 and IPv6."""
    port: int = DEFAULT_PORT
    cert_file: str = ""
    key_file: str = ""


@asynccontextmanager
async def served(
    serving: Serving,
    live: Mapping[str, Check],
    ready: Mapping[str, Check],
    metrics: Callable[[], bytes],
) -> AsyncIterator[int]:
    """Serves while it is entered; yields the port. `ready` is checked besides `live` for /readyz.

    Raises:
        OSError: the port can't be had.
    """
    app = web.Application()
    app.router.add_get("/healthz", _checked("healthz", live))
    app.router.add_get("/livez", _checked("livez", live))
    app.router.add_get("/readyz", _checked("readyz", {**live, **ready}))
    app.router.add_get("/metrics", _metrics(metrics))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.25)
    await runner.setup()
    try:
        site = web.TCPSite(runner, serving.host or None, serving.port, ssl_context=_tls(serving))
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _checked(name: str, checks: Mapping[str, Check]) -> Handler:
    def report(problems: Mapping[str, str]) -> str:
        lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in problems.items()]
        return "\n".join([*lines, f"{name} check {'failed' if any(problems.values()) else 'passed'}", ""])

    async def answer(request: web.Request) -> web.Response:
        problems = {check: ask() for check, ask in checks.items()}
        if any(problems.values()):
            return web.Response(status=500, text=report(problems))
        return web.Response(text=report(problems) if "verbose" in request.query else "ok")

    return answer


def _metrics(metrics: Callable[[], bytes]) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return answer


def _tls(serving: Serving) -> ssl.SSLContext | None:
    if not serving.cert_file:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(serving.cert_file, serving.key_file or None)
    return context
