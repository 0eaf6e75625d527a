"""Writes that fail, are answered by nobody, or may not be sent any more; an API server that answers as it is told."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from podtrail_kubernetes.rate_limiter import RateLimiter
from podtrail_kubernetes.rest_client import RestClient
from podtrail_scheduler.cluster.kubernetes.api_client import ApiClient, ApiEventSink
from podtrail_scheduler.event_recording.event import Event, ObjectReference
from podtrail_scheduler.framework.client import ApiError, PodCondition
from podtrail_scheduler.objects import Pod

from tests.free_ports import free_ports
from tests.kubernetes.test_rest_client import served, status

POD = Pod("web", uid="u1")
UNSCHEDULABLE = PodCondition("PodScheduled", "False", "Unschedulable", "no")
EVENT = Event(ObjectReference("v1", "Pod", "default", "web", "u1", "1"), None, "Normal", "Scheduled", "", "", "", "", 1)
INTERNAL = (500, "InternalError")
LOST = (0, "")


class ApiServer:
    """Answers each write with the next of these codes and reasons, then with success; a code of 0 cuts the line."""

    def __init__(self, answers: Sequence[tuple[int, str]], node: str = "", uid: str = "u1") -> None:
        self.answers = list(answers)
        self.pod = {"metadata": {"uid": uid}, "spec": {"nodeName": node}}
        self.writes = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response(self.pod)
        self.writes += 1
        code, reason = self.answers.pop(0) if self.answers else (200, "")
        if not code:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"kind": "Status"}) if code == 200 else status(code, reason)


@asynccontextmanager
async def client_of(server: ApiServer, **options: Any) -> AsyncIterator[ApiClient]:
    async with served(server.answer) as url:
        rest = await RestClient.open(master=url, agent="tests")
        yield ApiClient(rest, lambda _: None, lambda: 0, RateLimiter(0, 1), **options)
        await rest.close()


async def write(client: ApiClient, what: str) -> None:
    match what:
        case "bind":
            await client.bind(POD, "n1", {})
        case "status":
            await client.patch_pod_status(POD, UNSCHEDULABLE, None)
        case "condition":
            await client.remove_pod_condition(POD, "PodScheduled")
        case _:
            await client.delete_pod(POD)


@pytest.mark.parametrize(
    ("what", "answers"),
    [
        ("bind", [INTERNAL]),
        ("bind", [INTERNAL] * 3),
        ("bind", [(500, "")]),
        ("bind", [(503, "ServiceUnavailable")]),
        ("status", [INTERNAL]),
        ("status", [(503, ""), (409, "Conflict"), INTERNAL]),
        ("condition", [(409, "Conflict")]),
    ],
)
async def test_is_sent_again_as_kube_scheduler_sends_it(what: str, answers: Sequence[tuple[int, str]]) -> None:
    server = ApiServer(answers)
    async with client_of(server) as client:
        await write(client, what)
    assert server.writes == len(answers) + 1


@pytest.mark.parametrize(
    ("what", "answers", "writes"),
    [
        ("bind", [INTERNAL] * 9, 4),
        ("bind", [(500, "ServerTimeout")], 1),
        ("bind", [(409, "Conflict")], 1),
        ("bind", [(403, "Forbidden")], 1),
        ("bind", [LOST], 1),
        ("status", [(409, "Conflict")] * 9, 4),
        ("status", [(404, "NotFound")], 1),
        ("delete", [INTERNAL], 1),
    ],
)
async def test_fails_as_kube_scheduler_lets_it_fail(what: str, answers: Sequence[tuple[int, str]], writes: int) -> None:
    server = ApiServer(answers)
    async with client_of(server) as client:
        with pytest.raises(ApiError):
            await write(client, what)
    assert server.writes == writes


async def test_where_nobody_listens_it_is_sent_again_until_somebody_does() -> None:
    (port,) = free_ports(1)
    server, tries = ApiServer(()), 0
    runner = web.ServerRunner(web.Server(server.answer))
    await runner.setup()

    class Limiter(RateLimiter):
        async def wait(self) -> None:
            nonlocal tries
            tries += 1
            if tries == 3:
                await web.TCPSite(runner, "127.0.0.1", port).start()

    rest = await RestClient.open(master=f"http://127.0.0.1:{port}", agent="tests", limiter=Limiter(0, 1))
    await ApiClient(rest, lambda _: None, lambda: 0, RateLimiter(0, 1)).bind(POD, "n1", {})
    await rest.close()
    await runner.cleanup()
    assert (tries, server.writes) == (3, 1)


@pytest.mark.parametrize("answers", [[LOST], [INTERNAL, (409, "Conflict")], [(504, "Timeout")]])
@pytest.mark.parametrize(("node", "uid", "bound"), [("n1", "u1", True), ("n2", "u1", False), ("n1", "u2", False)])
async def test_a_binding_without_a_good_answer_succeeded_if_the_pod_is_there(
    answers: Sequence[tuple[int, str]], node: str, uid: str, *, bound: bool
) -> None:
    async with client_of(ApiServer(answers, node, uid)) as client:
        if bound:
            await client.bind(POD, "n1", {})
        else:
            with pytest.raises(ApiError):
                await client.bind(POD, "n1", {})


async def test_a_binding_that_is_refused_is_somebody_elses_though_the_pod_is_there() -> None:
    async with client_of(ApiServer([(409, "Conflict")], "n1")) as client:
        with pytest.raises(ApiError, match="Conflict"):
            await client.bind(POD, "n1", {})


@pytest.mark.parametrize("what", ["bind", "status", "condition", "delete"])
async def test_nothing_is_written_that_is_not_allowed(what: str) -> None:
    server = ApiServer((), "n1")
    async with client_of(server, allowed=lambda: False) as client:
        with pytest.raises(ApiError, match="not sent, for another may lead by now"):
            await write(client, what)
    assert server.writes == 0


async def test_nor_are_events() -> None:
    server = ApiServer(())
    async with served(server.answer) as url:
        rest = await RestClient.open(master=url, agent="tests")
        sink = ApiEventSink(rest, RateLimiter(0, 1), lambda: False)
        for sent in (sink.create_event(EVENT), sink.patch_event(EVENT.repeated(2))):
            with pytest.raises(ApiError, match="not sent"):
                await sent
        await rest.close()
    assert server.writes == 0
