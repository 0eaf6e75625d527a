import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession
from podtrail_extensions.health_check import FACTORY, HealthCheck

from podtrail.component import Context, StartError
from podtrail.component.refusals import RefusalWatch
from podtrail.config.types import SECOND


@asynccontextmanager
async def probing(
    refusals: RefusalWatch | None = None, **config: object
) -> AsyncIterator[tuple[HealthCheck, ClientSession]]:
    settings = FACTORY.Config.model_validate({"endpoint": "localhost:0"} | config)
    context = Context(id="health_check", refusals=refusals or RefusalWatch())
    health: HealthCheck = FACTORY.create(settings, context)
    async with health, ClientSession(f"http://{health.endpoint}") as probe:
        yield health, probe


async def test_it_is_available_from_ready_until_not_ready() -> None:
    async with probing() as (health, probe):
        answers = []
        changes: list[Callable[[], None]] = [health.not_ready, health.ready, health.not_ready]
        for change in changes:
            change()
            async with probe.get("/") as answer:
                answers.append((answer.status, (await answer.json())["status"]))
        assert answers == [
            (503, "Server not available"),
            (200, "Server available"),
            (503, "Server not available"),
        ]


async def test_it_tells_since_when_it_is_up() -> None:
    async with probing() as (health, probe):
        health.ready()
        async with probe.get("/below") as answer:
            told = await answer.json()
        assert answer.headers["Server"] == "podtrail"
        assert told["upSince"].endswith("Z")
        assert told["uptime"].endswith("s")


async def test_another_path_and_other_words_may_be_configured() -> None:
    bodies = {"healthy": "fine", "unhealthy": "not yet"}
    async with probing(path="/healthz", response_body=bodies) as (health, probe):
        async with probe.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (503, "not yet")
        health.ready()
        async with probe.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "fine")
        async with probe.get("/") as answer:
            assert answer.status == 404


async def test_a_port_in_use_is_a_start_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StartError, match=f"^can't listen on {endpoint}"):
            async with probing(endpoint=endpoint):
                pass


@pytest.mark.parametrize(
    ("config", "ago", "status", "told"),
    [
        ({}, 90, 200, "Server available, but refuses all spans for 1m30s: 340 MiB in use"),
        ({}, 50, 200, "Server available"),
        ({"component_health": {"include_recoverable_errors": True}}, 90, 503, "Server available, but refuses"),
        ({"component_health": {"include_recoverable_errors": True, "recovery_duration": "5m"}}, 90, 200, "Server"),
    ],
)
async def test_it_reports_that_everything_has_been_refused_for_a_while(
    config: dict[str, object], ago: int, status: int, told: str
) -> None:
    refusals = RefusalWatch()
    async with probing(refusals, **config) as (health, probe):
        health.ready()
        now = time.time_ns()
        for since in range(ago, 0, -10):
            refusals.refused("340 MiB in use", now - since * SECOND)
        async with probe.get("/") as answer:
            assert (answer.status, (await answer.json())["status"][: len(told)]) == (status, told)
        refusals.accepted()
        async with probe.get("/") as answer:
            assert (answer.status, (await answer.json())["status"]) == (200, "Server available")


async def test_a_refusal_that_no_client_repeats_is_forgotten() -> None:
    refusals = RefusalWatch()
    async with probing(refusals) as (health, probe):
        health.ready()
        refusals.refused("no room", time.time_ns() - 200 * SECOND)
        async with probe.get("/") as answer:
            assert (await answer.json())["status"] == "Server available"
