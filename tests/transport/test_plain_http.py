"""Pages, probes and metrics under attack: who opens many connections, or sends slowly, leaves the others room."""

import asyncio
import sys
from contextlib import suppress

import pytest
from aiohttp import ClientSession, TCPConnector
from podtrail_extensions.health_check import FACTORY

from podtrail.component import Context

DEADLINE = 120.0
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        await reader.read()


async def connect(endpoint: str, count: int, local: str = "127.0.0.1") -> list[Stream]:
    host, _, port = endpoint.rpartition(":")
    return [await asyncio.open_connection(host, int(port), local_addr=(local, 0)) for _ in range(count)]


async def left(streams: list[Stream], most: int) -> int:
    """Return how many connections are left once there are no more than that."""
    waiting = {asyncio.create_task(ended(reader)) for reader, _ in streams}
    async with asyncio.timeout(DEADLINE):
        while len(waiting) > most:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    return len(waiting)


async def probe(endpoint: str, local: str) -> int:
    connector = TCPConnector(local_addr=(local, 0))
    async with ClientSession(connector=connector) as session, session.get(f"http://{endpoint}/") as answer:
        return answer.status


@pytest.mark.skipif(sys.platform != "linux", reason="needs more than one address on the loopback")
async def test_one_address_takes_no_room_from_anothers_probes_and_what_ends_makes_room() -> None:
    settings = FACTORY.Config.model_validate({"endpoint": "127.0.0.1:0"})
    async with FACTORY.create(settings, Context(id="health_check")) as check:
        check.ready()
        many = await connect(check.endpoint, 130)
        assert await left(many, 100) == 100
        assert await probe(check.endpoint, "127.0.0.2") == 200
        assert await probe(check.endpoint, "127.0.0.1") == 200  # of the same address: a static Pod is probed so
        assert await left(many, 99) == 99
        for _, writer in many:
            writer.transport.abort()
        async with asyncio.timeout(DEADLINE):
            while True:
                (again,) = await connect(check.endpoint, 1)
                again[1].write(b"GET / HTTP/1.0\r\n\r\n")
                said = await again[0].read()
                again[1].close()
                if said:
                    break
        assert said.startswith(b"HTTP/1.0 200 ")


async def test_a_head_that_trickles_in_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podtrail.transport.plain_http._HEAD_SECONDS", 0.5)

    settings = FACTORY.Config.model_validate({"endpoint": "127.0.0.1:0"})
    async with FACTORY.create(settings, Context(id="health_check")) as check:
        check.ready()
        slow = await connect(check.endpoint, 20)
        for _, writer in slow[::2]:
            writer.write(b"GET / HT")
        assert await left(slow, 0) == 0
        assert await probe(check.endpoint, "127.0.0.1") == 200
        for _, writer in slow:
            writer.close()
