"""The stream behind `podtrail tap`: lines as they come, bounded, and no hindrance to a stop."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from podtrail.testing.attempts import MadeAttempt, no_room
from tests.extensions.asking import Viewing

PATIENCE = 60
TAP = "/api/v1/tap"


async def line(answer: ClientResponse, *kinds: str) -> dict[str, Any]:
    """Return the next line of these kinds."""
    async with asyncio.timeout(PATIENCE):
        while raw := await answer.content.readline():
            told: dict[str, Any] = json.loads(raw)
            if told["kind"] in kinds:
                return told
    raise AssertionError("the stream has ended")


def counts(status: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return what passed, matched and was lost."""
    return status["passed"], status["matched"], status["lost"]


async def test_decisions_and_spans_come_as_they_leave_a_pipeline(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser), browser.get(f"{TAP}?decisions=true&spans=true&pod=web-0") as answer:
        assert answer.status == 200
        assert answer.content_type == "application/x-ndjson"
        assert (await line(answer, "listening"))["policies"] == []
        viewer.observe("traces", MadeAttempt(uid="other", name="other").batch())
        viewer.observe("traces", no_room().batch())
        decision = await line(answer, "decision", "span")
        assert (decision["pipeline"], decision["decision"]["podName"]) == ("traces", "web-0")
        assert (await line(answer, "span"))["span"]["name"] == "SchedulePod"
        status = await line(answer, "status")
        assert 0 < status["matched"] < status["passed"]
        assert status["lost"] == 0


async def test_who_listens_to_a_silent_source_hears_since_when_it_is(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser):
        async with browser.get(TAP) as answer:
            never = await line(answer, "status")
            assert (never["lastUnixNano"], never["silentNano"]) == (0, 0)
        viewer.observe("traces", no_room().batch())
        async with browser.get(TAP) as answer:
            first, second = await line(answer, "status"), await line(answer, "status")
            assert first["passed"] == 0
            assert 0 < first["lastUnixNano"] == second["lastUnixNano"]
            assert 0 < first["silentNano"] < second["silentNano"]


async def test_who_listens_hears_that_nothing_came_or_matched(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser), browser.get(f"{TAP}?pod=nobody") as answer:
        assert counts(await line(answer, "status")) == (0, 0, 0)
        viewer.observe("traces", no_room().batch())
        while not (status := await line(answer, "status"))["passed"]:
            pass
        assert counts(status) == (1, 0, 0)


@pytest.mark.parametrize("what", ["decisions", "spans"])
async def test_what_there_is_no_room_for_is_lost_to_the_listener_and_counted(viewing: Viewing, what: str) -> None:
    async with viewing() as (viewer, browser), browser.get(f"{TAP}?{what}=true") as answer:
        await line(answer, "listening")
        batch = no_room().batch()
        for _ in range(1_500):
            viewer.observe("traces", batch)
        came = 1_500 if what == "decisions" else 1_500 * batch.span_count
        while not (status := await line(answer, "status"))["lost"]:
            pass
        assert counts(status) == (came, 1_000, came - 1_000)


async def test_listeners_are_bounded_and_bad_questions_refused(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser), AsyncExitStack() as stack:
        for query in ("decision=held", "nonsense=1", f"pod={'x' * 300}"):
            async with browser.get(f"{TAP}?{query}") as refused:
                assert refused.status == 400
        for _ in range(8):
            answer = await stack.enter_async_context(ClientSession(viewer.page))
            await line(await stack.enter_async_context(answer.get(TAP)), "listening")
        async with browser.get(TAP) as full:
            assert full.status == 503
            assert "8 are listening already" in (await full.json())["error"]


async def test_a_listener_that_has_gone_makes_room(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser):
        for _ in range(12):
            async with browser.get(TAP) as answer:
                await line(answer, "listening")
        viewer.observe("traces", no_room().batch())


@pytest.mark.parametrize("reading", [True, False])
async def test_a_stop_ends_the_streams_also_of_who_reads_nothing(viewing: Viewing, reading: bool) -> None:
    async with AsyncExitStack() as client:
        async with viewing() as (viewer, _):
            session = await client.enter_async_context(ClientSession(viewer.page, read_bufsize=1024))
            answer = await client.enter_async_context(session.get(f"{TAP}?spans=true&otlp=true"))
            await line(answer, "listening")
            batch = no_room().batch()
            while not reading and viewer.taps.waiting < 900:
                viewer.observe("traces", batch)
                await asyncio.sleep(0)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < PATIENCE
        if reading:
            async with asyncio.timeout(PATIENCE):
                await answer.content.read()
