"""The page behind a reverse proxy under a name of its own, as docs/page.md has it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import yaml
from aiohttp import ClientSession, DummyCookieJar, hdrs, web
from podtrail_extensions.viewer import FACTORY
from podtrail_extensions.viewer.extension import Viewer

from podtrail.component import Context
from podtrail.testing.attempts import MadeAttempt
from tests.page.site_map import links
from tests.page.test_pictures import PAGE

NAME = "podtrail.example"
POD = MadeAttempt()


def block() -> dict[str, object]:
    """Return what the page has a viewer configured as."""
    (found,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    settings: dict[str, object] = yaml.safe_load(found)["extensions"]["viewer"]
    return settings


@asynccontextmanager
async def behind_a_proxy(**settings: object) -> AsyncIterator[ClientSession]:
    """Run a viewer and a proxy that passes on what comes, and its Host; a client that calls the proxy by its name."""
    config = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"} | settings)
    viewer: Viewer = FACTORY.create(config, Context(id="viewer"))
    async with viewer, ClientSession(viewer.page, cookie_jar=DummyCookieJar()) as inner:
        batch = POD.batch()
        viewer.observe("traces", batch)
        viewer.library.keep(batch.groups, POD.start)

        async def passed_on(request: web.Request) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name != hdrs.CONNECTION}
            async with inner.get(request.raw_path, headers=headers, allow_redirects=False) as answer:
                kept = {
                    name: answer.headers[name] for name in (hdrs.CONTENT_TYPE, hdrs.LOCATION) if name in answer.headers
                }
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                async for part in answer.content.iter_any():
                    await response.write(part)
            return response

        application = web.Application()
        application.router.add_get("/{path:.*}", passed_on)
        runner = web.AppRunner(application, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "localhost", 0).start()
        try:
            address = f"http://localhost:{runner.addresses[0][1]}"
            async with ClientSession(address, headers={hdrs.HOST: NAME}) as client:
                yield client
        finally:
            await runner.cleanup()


def test_every_link_stays_at_the_proxy() -> None:
    async def main() -> None:
        async with behind_a_proxy(**block()) as client:
            async with client.get("/?state=all") as answer:
                assert answer.status == 200
                text = await answer.text()
            for link in links(text, "/"):
                async with client.get(link) as answer:
                    assert answer.status == 200, link
            addresses = re.findall(r"""(?:href|src|action)="([^"]*)""", text)
            assert [one for one in addresses if not re.match(r"/(?!/)|#", one)] == []
            for one in addresses:
                if one.startswith("/static/"):
                    async with client.get(one) as answer:
                        assert answer.status == 200, one
            async with client.get("/", params={"q": POD.trace_id.hex()}, allow_redirects=False) as answer:
                assert answer.headers[hdrs.LOCATION] == f"/traces/{POD.trace_id.hex()}"

    asyncio.run(main())


def test_what_is_live_comes_through() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), behind_a_proxy(**block()) as client, client.get("/api/v1/live") as answer:
            assert answer.content_type == "text/event-stream"
            assert await answer.content.readline()

    asyncio.run(main())


def test_a_name_that_is_not_allowed_is_refused_and_the_answer_says_what_to_do() -> None:
    async def main() -> None:
        async with behind_a_proxy() as client, client.get("/") as answer:
            assert answer.status == 403
            assert "allowed_hosts" in await answer.text()

    asyncio.run(main())
