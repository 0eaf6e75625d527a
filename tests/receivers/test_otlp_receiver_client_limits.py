"""What one client may use of the `otlp` receiver: one that floods leaves the others their share."""

import asyncio
import socket
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from podtrail_extensions.basicauth import FACTORY as BASIC

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.transport.caller import RemotePeer
from podtrail.transport.client_limits import ClientBudgets, ClientConnections, ClientLimits, OverLimit
from podtrail.transport.socket_table import connected

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 120.0
PROTOBUF = {"content-type": "application/x-protobuf"}
ASKS = {"auth": {"authenticator": "basicauth"}}


def basic(name: str) -> str:
    return "Basic " + b64encode(f"{name}:pw".encode()).decode()


async def export(channel: grpc.aio.Channel, body: bytes, name: str = "") -> grpc.aio.AioRpcError | None:
    method: Any = channel.unary_unary(METHOD)
    try:
        await method(body, timeout=DEADLINE, metadata=(("authorization", basic(name)),) if name else ())
    except grpc.aio.AioRpcError as error:
        return error
    return None


async def until(ask: Callable[[], Awaitable[Any]], answer: object) -> None:
    """Ask again and again until this is the answer."""
    async with asyncio.timeout(DEADLINE):
        while await ask() != answer:  # noqa: ASYNC110 - a server tells nobody
            await asyncio.sleep(0.01)


def delay(error: grpc.aio.AioRpcError | None) -> float:
    """Return the seconds of the RetryInfo."""
    assert error is not None
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailers = dict(error.trailing_metadata() or ())
    info = RetryInfo()
    assert Status.FromString(bytes(trailers["grpc-status-details-bin"])).details[0].Unpack(info)
    return float(info.retry_delay.seconds + info.retry_delay.nanos / SECOND)


async def test_a_client_that_floods_takes_nothing_from_another(serving: Any, request_of: Any) -> None:
    body = request_of(10).SerializeToString()
    asked, flooded = 20, 500
    limits = {"requests_per_second": 0.01, "burst": f"{asked * 100}s"}  # so many at once, and next to none afterwards

    users = BASIC.Config.model_validate({"htpasswd": {"inline": "flood:pw\nquiet:pw\n"}})
    async with (
        BASIC.create(users, Context(id="basicauth")) as users_extension,
        serving(authenticators={"basicauth": users_extension}, client_limits=limits, grpc=ASKS) as served,
        grpc.aio.insecure_channel(served["grpc"]) as channel,
    ):
        results = await asyncio.gather(
            *(export(channel, body, "flood") for _ in range(flooded)),
            *(export(channel, body, "quiet") for _ in range(asked)),
        )
        taken = Counter(error is None for error in results[:flooded])
        assert taken == {True: asked, False: flooded - asked}
        assert results[flooded:] == [None] * asked
        assert len(served.spans) == 2 * asked * 10
        labels = {"transport": "grpc", "client": "flood", "limit": "requests_per_second"}
        assert served.metric("podtrail_receiver_limited_requests_total", **labels) == flooded - asked


async def test_over_grpc_it_is_told_when_to_come_again(serving: Any, request_of: Any) -> None:
    body = request_of(1).SerializeToString()

    async with (
        serving(client_limits={"requests_per_second": 0.1}, grpc={}) as served,
        grpc.aio.insecure_channel(served["grpc"]) as channel,
    ):
        assert await export(channel, body) is None
        error = await export(channel, body)
        assert error is not None
        assert 5 < delay(error) <= 10
        assert error.details() == "too much of one client: requests_per_second"


async def test_over_http_it_is_told_when_to_come_again_and_bytes_count_as_they_are_decompressed(
    serving: Any, request_of: Any
) -> None:
    import gzip

    body = gzip.compress(request_of(1, payload=1_000_000).SerializeToString())
    assert len(body) < 10_000

    async with (
        serving(client_limits={"bytes_per_second": 10_000}, http={}) as served,
        aiohttp.ClientSession(headers=PROTOBUF | {"content-encoding": "gzip"}) as session,
    ):
        url = f"http://{served['http']}/v1/traces"
        async with session.post(url, data=body) as answer:
            assert answer.status == 200
        async with session.post(url, data=body) as answer:
            assert answer.status == 429
            assert 80 <= int(answer.headers["Retry-After"]) <= 100
        labels = {"transport": "http", "client": "127.0.0.1", "limit": "bytes_per_second"}
        assert served.metric("podtrail_receiver_limited_requests_total", **labels) == 1


async def test_a_client_of_grpc_has_so_many_connections_and_one_that_has_ended_makes_room(
    serving: Any, request_of: Any
) -> None:
    body = request_of(1).SerializeToString()
    apart = [("grpc.use_local_subchannel_pool", 1)]

    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(client_limits={"connections": 2}, grpc={}))
        channels = [grpc.aio.insecure_channel(served["grpc"], apart) for _ in range(3)]
        first, second, third = channels
        stack.push_async_callback(second.close)
        stack.push_async_callback(third.close)
        assert await export(first, body) is None
        assert await export(second, body) is None
        assert delay(await export(third, body)) == 1.0
        assert await export(second, body) is None
        await first.close()
        await until(lambda: export(third, body), None)


async def test_a_client_of_http_has_so_many_connections_and_one_that_has_ended_makes_room(
    serving: Any, request_of: Any
) -> None:
    body = request_of(1).SerializeToString()

    async with serving(client_limits={"connections": 1}, http={}) as served:
        url = f"http://{served['http']}/v1/traces"

        async def post(session: aiohttp.ClientSession) -> int:
            async with session.post(url, data=body, headers=PROTOBUF) as answer:
                return answer.status

        async with aiohttp.ClientSession() as second:
            async with aiohttp.ClientSession() as first:
                assert [await post(first), await post(first), await post(second)] == [200, 200, 429]
            await until(lambda: post(second), 200)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_more_connections_than_there_may_be_are_closed_and_those_that_stand_go_on(
    serving: Any, request_of: Any, protocol: str
) -> None:
    body = request_of(1).SerializeToString()

    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(**{protocol: {"max_connections": 2}}))
        host, _, port = served[protocol].rpartition(":")
        if protocol == "grpc":
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(served[protocol]))

            async def send() -> bool:
                return await export(channel, body) is None
        else:
            session = await stack.enter_async_context(aiohttp.ClientSession(headers=PROTOBUF))

            async def send() -> bool:
                async with session.post(f"http://{served[protocol]}/v1/traces", data=body) as answer:
                    return answer.status == 200

        assert await send()
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        left = {asyncio.create_task(_end(reader)) for reader, _ in idle}
        async with asyncio.timeout(DEADLINE):
            while len(left) > 1:
                _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        assert await send()
        for task in left:
            task.cancel()
        for _, writer in idle:
            writer.transport.abort()


async def _end(reader: asyncio.StreamReader) -> None:
    """Return when the other side has closed the connection."""
    try:
        while await reader.read(1_000):
            pass
    except ConnectionError:
        pass


async def test_who_sends_slowly_is_cut_off_while_others_are_served(serving: Any, request_of: Any) -> None:
    body = request_of(1).SerializeToString()
    head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000\r\n"

    limits = {"idle_timeout": "3s", "read_timeout": "3s"}
    async with serving(http=limits) as served, aiohttp.ClientSession(headers=PROTOBUF) as session:
        host, _, port = served["http"].rpartition(":")
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
        for number, (_, writer) in enumerate(slow):
            writer.write(head + b"\r\nx" if number % 2 else b"POST /v1/tr")
        async with session.post(f"http://{served['http']}/v1/traces", data=body) as answer:
            assert answer.status == 200
        async with asyncio.timeout(DEADLINE):
            answers = await asyncio.gather(*(_rest(reader) for reader, _ in slow))
        assert {b"408" in answer for answer in answers[1::2]} == {True}
        assert served.metric("podtrail_receiver_failed_requests_total", transport="http", reason="timeout") == 25
        for _, writer in slow:
            writer.close()


async def test_who_connects_over_grpc_and_says_nothing_is_cut_off_while_others_are_served(
    serving: Any, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail.transport.grpc_server._HANDSHAKE_MS", 3_000)
    body = request_of(1).SerializeToString()

    async with serving(grpc={}) as served, grpc.aio.insecure_channel(served["grpc"]) as channel:
        host, _, port = served["grpc"].rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
        assert await export(channel, body) is None
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*(_end(reader) for reader, _ in silent))
        assert await export(channel, body) is None
        for _, writer in silent:
            writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def limits(**values: Any) -> ClientLimits:
    return ClientLimits.model_validate(values)


def test_a_share_grows_back_with_time_and_no_further_than_its_burst() -> None:
    clock = [0]
    budgets = ClientBudgets(limits(requests_per_second=2, burst="1s"), lambda: clock[0])
    for _ in range(2):
        budgets.admit("agent")
    with pytest.raises(OverLimit) as over:
        budgets.admit("agent")
    assert over.value.after == 0.5
    clock[0] = SECOND // 2
    budgets.admit("agent")
    clock[0] = 3600 * SECOND
    for _ in range(2):
        budgets.admit("agent")
    with pytest.raises(OverLimit):
        budgets.admit("agent")


def test_a_request_larger_than_the_share_is_taken_and_paid_for_afterwards() -> None:
    clock = [0]
    budgets = ClientBudgets(limits(bytes_per_second=100, burst="1s"), lambda: clock[0])
    budgets.admit("agent")(1_000)
    with pytest.raises(OverLimit) as over:
        budgets.admit("agent")
    assert over.value.limit == "bytes_per_second"
    assert over.value.after == pytest.approx(9.01)
    clock[0] = int(9.01 * SECOND)
    budgets.admit("agent")


def test_memory_is_bounded_however_many_addresses_there_are() -> None:
    budgets = ClientBudgets(limits(requests_per_second=1))
    connections = ClientConnections(2, set)
    for number in range(30_000):
        budgets.admit(str(number))
        connections.enter(str(number), (str(number), 1))
    assert len(budgets._budgets) == 10_000
    assert len(connections._of) == 10_000


def test_labels_are_bounded_however_many_clients_are_refused(serving: Any) -> None:
    from podtrail_receivers.intake_counters import IntakeCounters

    context = Context(id="otlp")
    counters = IntakeCounters(context)
    for number in range(1_000):
        counters.limited("grpc", f"10.0.{number // 256}.{number % 256}", "connections")
    rows = context.metrics.snapshot()["podtrail_receiver_limited_requests_total"]
    assert len(rows) == 101
    assert sum(rows.values()) == 1_000
    assert max(rows.values()) == 900


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("::1", "::1"),
        ("2a02:8070:1:2:3:4:5:6", "2a02:8070:1:2::/64"),
        ("fe80::1%eth0", "fe80::1"),
        ("", "unix"),
    ],
)
def test_a_client_without_a_name_is_its_address_and_of_ipv6_its_site(host: str, client: str) -> None:
    assert RemotePeer(host, 1, (), lambda _: None).address == client


def test_the_systems_table_has_who_is_connected_to_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            found = connected(port)
            if found is None:
                pytest.skip("this system has no such table")
            assert set(found) == {client.getsockname()}
        assert connected(port) == set() or client.getsockname() not in (connected(port) or ())
