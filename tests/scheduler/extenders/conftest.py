"""An extender: an HTTP server on the loopback that answers what a test tells it to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import ClientSession, web
from podtrail_scheduler.configuration import types
from podtrail_scheduler.configuration.defaults import EXTENDER_TIMEOUT
from podtrail_scheduler.extenders import HTTPExtender
from podtrail_scheduler.objects import Pod


class Manifests:
    """Objects with no more than a name."""

    def pod(self, pod: Pod) -> Mapping[str, Any]:
        return {"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}}

    def node(self, name: str) -> Mapping[str, Any]:
        return {"metadata": {"name": name}}


@dataclass
class Server:
    """Answers each verb with what is in `answers` (a number is an HTTP status); keeps what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""
    hang: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        self.asked.append((verb, await request.json()))
        answer = self.answers.get(verb)
        if answer == "hang":
            await self.hang.wait()
        if isinstance(answer, int):
            return web.Response(status=answer)
        if isinstance(answer, bytes):
            return web.Response(body=answer)
        return web.json_response(answer)


@asynccontextmanager
async def serving(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    application = web.Application()
    application.router.add_post("/{verb}", server.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        server.hang.set()
        await runner.cleanup()


@dataclass
class Asking:
    """Extenders on one server, all verbs on."""

    server: Server
    session: ClientSession

    def extender(self, **changes: Any) -> types.Extender:
        whole = types.Extender(
            url_prefix=self.server.url + "/",
            filter_verb="filter",
            prioritize_verb="prioritize",
            bind_verb="bind",
            preempt_verb="preempt",
            weight=2,
            http_timeout=EXTENDER_TIMEOUT * 12,
        )
        return replace(whole, **changes)

    def made(self, *configurations: types.Extender) -> tuple[HTTPExtender, ...]:
        return tuple(HTTPExtender(each, self.session, Manifests()) for each in configurations or (self.extender(),))


Scenario = Callable[..., Any]


@pytest.fixture
def ask() -> Callable[[Mapping[str, Any], Scenario], Any]:
    """Runs a scenario (a coroutine function of `Asking`) against a server with these answers."""

    def run(answers: Mapping[str, Any], scenario: Scenario, tls: ssl.SSLContext | None = None) -> Any:
        async def scene() -> Any:
            async with serving(Server(dict(answers)), tls) as server, ClientSession() as session:
                return await scenario(Asking(server, session))

        return asyncio.run(scene())

    return run
