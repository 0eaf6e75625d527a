"""Who looks at a page hears of changes, whatever else happens: many listeners, slow ones, gone ones, an end."""

import asyncio
import json
import re
import socket
import time
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession
from podtrail_extensions.viewer import extension, last_came, live, refreshed

from podtrail.component import SimulatedTime
from podtrail.testing.attempts import MadeAttempt, no_room
from tests.extensions.asking import Viewing


async def event(stream: ClientResponse) -> dict[str, Any]:
    """Return the next event of a stream."""
    async with asyncio.timeout(60):
        while not (line := await stream.content.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
    told: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    return told


def shown(page: str) -> str:
    """Return what a page without scripts says of silence; "" where it says nothing."""
    found = re.search(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    return found[1] if found else ""


async def listening(browser: ClientSession, stack: AsyncExitStack) -> ClientResponse:
    """Return a stream, after its first event."""
    stream = await stack.enter_async_context(browser.get("/api/v1/live"))
    assert stream.status == 200
    await event(stream)
    return stream


async def test_a_change_is_told_once_and_its_headers_let_it_pass_proxies(viewing: Viewing) -> None:
    async with viewing(no_room().batch()) as (viewer, browser), browser.get("/api/v1/live") as stream:
        assert stream.content_type == "text/event-stream"
        assert stream.headers["X-Accel-Buffering"] == "no"
        assert "default-src 'none'" in stream.headers["Content-Security-Policy"]
        first = await event(stream)
        viewer.observe("traces", MadeAttempt(uid="another").batch())
        viewer.observe("traces", MadeAttempt(uid="a third").batch())
        second = await event(stream)
        assert first["changes"] < second["changes"] == viewer.stories.changes


async def test_silence_is_broken_by_comments_and_a_source_of_another_age_by_its_end(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("_BEAT", 0.1), ("_PACE", 0.01), ("_QUIET", 0.05)):
        monkeypatch.setattr(live, name, seconds)

    async with viewing(MadeAttempt(start=10**18).batch()) as (_, browser), browser.get("/api/v1/live") as stream:
        first, second = await event(stream), await event(stream)
        assert [(one["live"], one["ended"]) for one in (first, second)] == [(False, False), (False, True)]
        assert first["changes"] == second["changes"]
        async with asyncio.timeout(60):
            while not (await stream.content.readline()).startswith(b":"):
                pass


async def test_the_clock_of_a_simulation_stands_still_also_where_it_ends_now_and_goes_on_with_what_is_later(
    viewing: Viewing,
) -> None:
    start = time.time_ns() - 10**9

    async with viewing(no_room(start=start).batch()) as (viewer, browser):
        assert viewer.clock().live
        viewer.note(SimulatedTime(start + 10**9))
        assert viewer.clock() == (viewer.stories.latest, False)
        assert "clock stands at" in await (await browser.get("/")).text()
        viewer.observe("traces", MadeAttempt(uid="another", start=start + 2 * 10**9).batch())
        assert viewer.clock().live


async def test_that_nothing_came_for_long_is_told_and_shown_until_something_comes(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_PACE", 0.01)

    made = MadeAttempt(start=time.time_ns()).batch()
    async with viewing(made) as (viewer, browser), browser.get("/api/v1/live") as stream:
        first = await event(stream)
        assert (first["live"], first["ended"], first["nothingSince"]) == (True, False, "")
        assert "nothing has come" not in await (await browser.get("/")).text()
        monkeypatch.setattr(last_came, "SILENT", 1)
        silent = await event(stream)
        assert silent["changes"] == first["changes"]
        assert re.fullmatch(r"\d\d:\d\d:\d\d", silent["nothingSince"])
        assert f"{silent['nothingSince']} UTC" in shown(await (await browser.get("/pods/nobody")).text())
        monkeypatch.setattr(last_came, "SILENT", 10**15)
        viewer.observe("traces", MadeAttempt(uid="another", start=time.time_ns()).batch())
        assert (await event(stream))["nothingSince"] == ""


async def test_fifty_listeners_all_hear_of_a_change_and_delay_no_end(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace = 240.0
    monkeypatch.setattr(extension, "_GRACE", grace)

    async with AsyncExitStack() as stack, viewing() as (viewer, browser):
        streams = [await listening(browser, stack) for _ in range(50)]
        viewer.observe("traces", no_room().batch())
        heard = await asyncio.gather(*map(event, streams))
        assert {one["changes"] for one in heard} == {viewer.stories.changes}
        began = time.monotonic()
        await viewer.__aexit__(None, None, None)
        took = time.monotonic() - began
        assert [await stream.content.read() for stream in streams] == [b"\n"] * 50, "not all ended in order"
    assert took < grace / 2


async def test_who_comes_when_all_places_are_taken_is_told_so_and_has_one_once_somebody_left(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_MOST", 2)

    async with viewing() as (_, browser), AsyncExitStack() as stack:
        first, _ = [await listening(browser, stack) for _ in range(2)]
        async with browser.get("/api/v1/live") as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        first.close()
        async with asyncio.timeout(60):
            status = 503
            while status == 503:
                async with browser.get("/api/v1/live") as stream:
                    status = stream.status


async def test_nothing_is_kept_for_who_reads_nothing_and_at_last_it_is_let_go(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_PACE", 0.0005), ("_STUCK", 0.2), ("_MOST", 2)):
        monkeypatch.setattr(live, name, value)

    async with viewing() as (viewer, browser), AsyncExitStack() as stack:
        quick = await listening(browser, stack)
        slow = stack.enter_context(socket.socket())
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(("localhost", int(viewer.page.rsplit(":", 1)[1].strip("/"))))
        slow.sendall(b"GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.settimeout(60)
        await asyncio.to_thread(slow.recv, 1)
        place, heard = 503, {"changes": 0}
        async with asyncio.timeout(60):
            while place == 503 or heard["changes"] <= 100:
                viewer.stories.changes += 1
                heard = await event(quick)
                async with browser.get("/api/v1/live") as third:
                    place = third.status
        read, heard = len(await asyncio.to_thread(_all_of, slow)), heard
    assert heard["changes"] > 100
    assert read < 64 << 10


def _all_of(slow: socket.socket) -> bytes:
    """Return what had come until the server ended the connection."""
    held = b""
    with suppress(ConnectionResetError):
        while piece := slow.recv(65_536):
            held += piece
    return held


@pytest.mark.parametrize(("age", "shares"), [(3_600.0, True), (0.0, False)])
async def test_who_watch_one_page_share_it_for_a_second_and_who_opens_it_gets_it_new(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch, age: float, shares: bool
) -> None:
    monkeypatch.setattr(refreshed, "_AGE", age)

    async with viewing(no_room(uid="first").batch()) as (viewer, browser):

        async def pods(headers: dict[str, str]) -> str:
            async with browser.get("/", headers=headers) as answer:
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                return await answer.text()

        watched = {refreshed.HEADER: "1"}
        before = await pods(watched)
        viewer.observe("traces", no_room(uid="second").batch())
        assert (await pods(watched) == before) is shares
        assert "/pods/second" in await pods({})
        async with browser.get("/nowhere", headers=watched) as answer:
            assert answer.status == 404


async def test_a_head_is_answered_and_another_site_is_refused(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        async with browser.head("/api/v1/live") as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
        async with browser.get("/api/v1/live", headers={"Sec-Fetch-Site": "cross-site"}) as answer:
            assert answer.status == 403
