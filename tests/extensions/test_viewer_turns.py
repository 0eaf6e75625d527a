"""A crowd of readers: their answers take turns with whatever else the loop has to do."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from podtrail_extensions.viewer.extension import Viewer
from podtrail_extensions.viewer.turns import turns

from podtrail.story import AttemptStory
from podtrail.story.full_attempts import DecidedAttempt
from podtrail.testing.attempts import START, MadeAttempt, No
from podtrail.transport.plain_http import served

CROWD = 40
PATIENCE = 60
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """Serve every path by a handler; yields the port."""
    application = web.Application(middlewares=[turns()])
    application.add_routes([web.get("/{any:.*}", handler)])
    async with served(web.AppRunner(application, handle_signals=False, shutdown_timeout=1), "127.0.0.1:0") as port:
        yield port


async def caller(port: int, stack: AsyncExitStack) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stack.callback(writer.close)
    return reader, writer


def ask(writer: asyncio.StreamWriter, path: str) -> None:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())


@pytest.mark.parametrize("path", ["/", "/api/v1/pods", "/incident", "/pods/x/report.md"])
def test_the_loop_does_all_else_between_two_answers(path: str) -> None:
    async def main() -> None:
        rounds, at = 0, []
        over = asyncio.Event()

        async def count() -> None:
            nonlocal rounds
            while not over.is_set():
                rounds += 1
                await asyncio.sleep(0)

        async def answer(_request: web.Request) -> web.Response:
            at.append(rounds)
            return web.Response()

        async with serving(answer) as port, AsyncExitStack() as stack:
            callers = [await caller(port, stack) for _ in range(CROWD)]
            counting = asyncio.create_task(count())
            for _, writer in callers:
                ask(writer, path)
            async with asyncio.timeout(PATIENCE):
                for reader, _ in callers:
                    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            over.set()
            await counting
        assert len(at) == len(set(at)) == CROWD

    asyncio.run(main())


async def test_streams_and_reports_keep_no_page_waiting() -> None:
    release = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if request.path != "/":
            await release.wait()
        return web.Response()

    async with serving(answer) as port, AsyncExitStack() as stack:
        for path in ("/api/v1/live", "/api/v1/live", "/api/v1/tap", "/incident", "/traces/x/perfetto.json"):
            ask((await caller(port, stack))[1], path)
        reader, writer = await caller(port, stack)
        ask(writer, "/")
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        release.set()


PATHS = ("/pods/{}", "/api/v1/pods/{}", "/pods/{}/attempts/3", "/pods/{}/report.md", "/api/v1/why?pod={}")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("asked", ["u", "default/big"])
async def test_many_attempts_that_were_not_kept_are_read_in_a_thread(
    viewing: Callable[..., AbstractAsyncContextManager[tuple[Viewer, ClientSession]]],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    asked: str,
) -> None:
    readers: list[int] = []
    read = DecidedAttempt.read

    def note(one: DecidedAttempt) -> AttemptStory:
        readers.append(threading.get_ident())
        return read(one)

    monkeypatch.setattr(DecidedAttempt, "read", note)
    no = [No(plugin=f"Plugin{number}", reason="no " * 90, nodes=["n"]) for number in range(200)]
    made = [
        MadeAttempt(uid="u", name="big", number=number, start=START + number, result="Unschedulable", refusals=no)
        for number in range(1, 6)
    ]

    batches = [one.batch("not_sampled", "") for one in made]
    async with viewing(*batches) as (_, browser), browser.get(path.format(asked)) as answer:
        assert answer.status == 200
    assert len(readers) == len(made)
    assert threading.get_ident() not in readers
