import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import ClientSession
from podtrail_extensions.viewer import extension, support

from podtrail.recording import Record, read_recording
from podtrail.testing.attempts import MadeAttempt, no_room
from tests.extensions.asking import Viewing

PATIENCE = 60.0


async def test_what_is_kept_is_recorded_for_as_long_as_was_asked(viewing: Viewing, tmp_path: Path) -> None:
    made = no_room()

    async with viewing() as (viewer, browser):
        async with browser.get("/api/v1/record?seconds=1") as answer:
            assert answer.status == 200
            async with browser.get("/api/v1/record?seconds=1") as second:
                assert second.status == 400
                assert "Somebody records already" in (await second.json())["error"]
            viewer._support.keep(made.groups())
            (tmp_path / "kept.jsonl").write_bytes(await answer.read())
        viewer._support.keep(made.groups())
    (record,) = read_recording(tmp_path / "kept.jsonl")
    assert isinstance(record, Record)
    assert record.intake.groups[0].trace_id == made.trace_id


def test_a_client_that_leaves_lets_the_next_one_record(viewing: Viewing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "_LOOKS", 0.01)

    async def main() -> None:
        async with viewing() as (_, browser):
            answer = await browser.get("/api/v1/record?seconds=600")
            answer.close()
            async with asyncio.timeout(PATIENCE):
                while True:  # each answer takes its time
                    async with browser.get("/api/v1/record?seconds=1") as second:
                        if second.status == 200:
                            return

    asyncio.run(main())


async def test_who_only_asks_for_the_headers_records_nothing(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        async with browser.head("/api/v1/record?seconds=600") as answer:
            assert answer.status == 200
        async with browser.get("/api/v1/record?seconds=1") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("reading", [True, False])
async def test_a_stop_ends_a_recording_also_of_who_reads_nothing(
    viewing: Viewing, *, reading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "_GRACE", PATIENCE)
    batch = MadeAttempt(attributes={"long": "x" * (4 << 20)})

    async with AsyncExitStack() as client:
        async with viewing() as (viewer, _):
            session = await client.enter_async_context(ClientSession(viewer.page, read_bufsize=1024))
            answer = await client.enter_async_context(session.get("/api/v1/record?seconds=600"))
            assert await answer.content.read(1) == b"\n"
            recording = viewer._support._recording
            assert recording
            assert recording._transport
            while not reading and not recording._transport.get_write_buffer_size():
                viewer._support.keep(batch.groups())
                await asyncio.sleep(0)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < PATIENCE / 2
        if reading:
            async with asyncio.timeout(PATIENCE):
                await answer.content.read()


async def test_who_takes_nothing_is_let_go_and_the_next_one_records(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "_STUCK", 0.05)
    batch = MadeAttempt(attributes={"long": "x" * (4 << 20)})

    async with viewing() as (viewer, browser), ClientSession(viewer.page, read_bufsize=1024) as slow:
        async with slow.get("/api/v1/record?seconds=600"), asyncio.timeout(PATIENCE):
            while viewer._support._recording:
                viewer._support.keep(batch.groups())
                await asyncio.sleep(0)
        async with browser.get("/api/v1/record?seconds=1") as answer:
            assert answer.status == 200


async def test_lengths_have_bounds(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        for seconds in ("0", "601", "-1", "x", "\u0661", "9" * 99):
            async with browser.get("/api/v1/record", params={"seconds": seconds}) as answer:
                assert answer.status == 400


async def test_without_a_process_there_are_the_policies(viewing: Viewing) -> None:
    async with viewing(no_room().batch()) as (_, browser):
        async with browser.get("/api/v1/support") as answer:
            files = (await answer.json())["files"]
        assert list(files) == ["policies.json"]
        assert json.loads(files["policies.json"])
        async with browser.get("/api/v1/log") as answer:
            assert (answer.status, await answer.text()) == (200, "")
