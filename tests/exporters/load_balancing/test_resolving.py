"""Backends that are found by name, and those that are removed while they owe."""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from podtrail_exporters.load_balancing.config import DnsResolver
from podtrail_exporters.load_balancing.dns_resolver import DnsLookups

from podtrail.component import Ledger
from tests.exporters.load_balancing.balanced import (
    Balancing,
    Gateway,
    balancing,
    batch_of,
    gateways,
    trace,
    until,
    where,
)


class Heard:
    """What a resolver tells."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Sequence[str] | str] = asyncio.Queue()

    def resolved(self, backends: Sequence[str]) -> None:
        self.told.put_nowait(list(backends))

    def failed(self, reason: str) -> None:
        self.told.put_nowait(reason)


def look_ups(answers: list[Sequence[str] | Exception], **settings: Any) -> DnsLookups:
    """A resolver whose look-ups are answered from a list, then without end by the last."""

    async def look_up(name: str) -> Sequence[str]:
        assert name == "gateways.observability"
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return DnsLookups(
        DnsResolver.model_validate({"hostname": "gateways.observability", "interval": "10ms", **settings}), look_up
    )


async def test_addresses_are_named_as_the_collectors_ring_names_them() -> None:
    addresses = ["10.0.0.2", "fd00:0:0::1", "::ffff:10.0.0.3", "fe80::1%eth0"]
    heard = Heard()
    resolver = look_ups([addresses])
    await resolver.start(heard)
    await resolver.stop()
    assert await heard.told.get() == ["10.0.0.2", "[fd00::1]", "10.0.0.3", "[fe80::1]"]
    resolver = look_ups([addresses[:2]], port=5317)
    await resolver.start(heard := Heard())
    await resolver.stop()
    assert await heard.told.get() == ["10.0.0.2:5317", "[fd00::1]:5317"]


async def test_a_name_is_looked_up_again_and_again_whatever_came_of_it() -> None:
    heard = Heard()
    unknown = OSError(-2, "Name or service not known")
    resolver = look_ups([unknown, ["10.0.0.1"], TimeoutError(), ["10.0.0.1", "10.0.0.2"]])
    await resolver.start(heard)
    async with asyncio.timeout(120):
        told = [await heard.told.get() for _ in range(4)]
    await resolver.stop()
    assert told == [
        "dns: 'gateways.observability' can't be looked up: Name or service not known",
        ["10.0.0.1"],
        "dns: no answer for 'gateways.observability' within 1 s",
        ["10.0.0.1", "10.0.0.2"],
    ]


async def test_the_systems_resolver_is_asked() -> None:
    async with gateways(1) as (backend,):
        here = balancing(resolver={"dns": {"hostname": "localhost", "port": str(backend.port), "interval": "20ms"}})
        async with here:
            here.offer(batch_of(*range(20)))
            await here.settle()
            assert here.ledger == Ledger(delivered=40)
            assert backend.spans.total() == 40
            resolutions = here.metric("otelcol_loadbalancer_num_resolutions")
            assert resolutions["exporter=load_balancing,resolver=dns,success=true"] >= 1


async def test_a_name_that_is_unknown_is_told_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    here = balancing(resolver={"dns": {"hostname": "gateways.invalid", "interval": "10ms"}})
    async with here:
        here.offer(batch_of(1))
        await until(lambda: "no backend" in caplog.text)
        assert here.queue.held() == 2
    assert "can't find its backends (none is known, spans wait): dns: 'gateways.invalid' can't be" in caplog.text
    assert "no backend: dns: 'gateways.invalid' can't be looked up: " in caplog.text
    told = [record for record in caplog.records if "can't find its backends" in record.message]
    assert len(told) == 1
    assert here.metric("otelcol_loadbalancer_num_resolutions").keys() == {
        "exporter=load_balancing,resolver=dns,success=false"
    }
    assert here.metric("otelcol_loadbalancer_num_backends") == {"exporter=load_balancing,resolver=dns": 0}


def name_of(gateway: Gateway) -> str:
    return f"127.0.0.1:{gateway.port}"


def resolve(here: Balancing, backends: Sequence[Gateway]) -> None:
    """As a resolver would."""
    here.exporter._backends.resolved([name_of(each) for each in backends])


async def test_traces_under_way_stay_when_backends_come() -> None:
    async with gateways(5) as backends, balancing(backends[:3]) as here:
        here.offer(batch_of(*range(100)))
        await here.settle()
        resolve(here, backends)
        here.offer(batch_of(*range(300), first=10))
        await here.settle()
        assert here.ledger == Ledger(delivered=800)
        assert all(len(places) == 1 for places in where(backends).values())
        new = backends[3].traces | backends[4].traces
        assert new
        assert not new & {trace(number) for number in range(100)}
        assert here.metric("otelcol_loadbalancer_num_backend_updates") == {"exporter=load_balancing,resolver=static": 2}
        assert here.metric("otelcol_loadbalancer_num_backends") == {"exporter=load_balancing,resolver=static": 5}


async def test_without_a_grace_they_follow_the_ring() -> None:
    async with gateways(5) as backends, balancing(backends[:3], grace="0s") as here:
        here.offer(batch_of(*range(100)))
        await here.settle()
        resolve(here, backends)
        here.offer(batch_of(*range(100), first=10))
        await here.settle()
        assert any(len(places) == 2 for places in where(backends).values())


async def test_a_removed_backend_gets_what_it_began_and_nothing_new() -> None:
    async with gateways(4) as backends, balancing(backends) as here:
        here.offer(batch_of(*range(100)))
        await here.settle()
        leaving = backends[1]
        began = leaving.traces
        resolve(here, [each for each in backends if each is not leaving])
        here.offer(batch_of(*range(300), first=10))
        await here.settle()
        assert leaving.traces == began
        assert all(len(places) == 1 for places in where(backends).values())
        assert here.ledger == Ledger(delivered=800)


@pytest.mark.parametrize("how", ["stands still", "is busy", "is gone"])
async def test_what_a_removed_backend_owes_goes_to_the_new_owner(how: str) -> None:
    async with gateways(4) as backends, balancing(backends, otlp={"timeout": "2s"}) as here:
        leaving, rest = backends[1], [backends[0], backends[2], backends[3]]
        leaving.gate.clear()
        here.offer(batch_of(*range(100)))
        async with asyncio.timeout(120):
            await leaving.arrived.wait()
        resolve(here, rest)
        if how == "is busy":
            leaving.answer = (grpc.StatusCode.UNAVAILABLE, "going")
            leaving.gate.set()
        elif how == "is gone":
            await leaving.stop()
        await here.settle()
        assert here.ledger == Ledger(delivered=200)
        assert sum(each.spans.total() for each in rest) == 200
        assert all(len(places) == 1 for places in where(rest).values())
        moved = here.metric("podtrail_loadbalancer_moved_spans_total")
        assert moved["exporter=load_balancing,reason=removed"] > 0
        assert here.metric("podtrail_loadbalancer_backends_down") == {"exporter=load_balancing": 0}
        assert f"endpoint={leaving.name}" not in str(here.metric("otelcol_loadbalancer_backend_outcome"))


async def test_a_backend_that_is_removed_for_good_leaves_no_connection_and_no_counters() -> None:
    async with gateways(3) as backends, balancing(backends, grace="20ms") as here:
        here.offer(batch_of(*range(50)))
        await here.settle()
        resolve(here, backends[1:])
        gone = f"endpoint={backends[0].name}"
        await until(lambda: gone not in str(here.metric("otelcol_loadbalancer_backend_outcome")))
        assert len(here.metric("otelcol_loadbalancer_backend_latency_count")) == 2
        assert len(here.exporter._backends._backends) == 2


async def test_latency_and_outcome_are_counted_by_backend() -> None:
    async with gateways(2) as backends, balancing(backends) as here:
        backends[0].answer = (grpc.StatusCode.INVALID_ARGUMENT, "no")
        here.offer(batch_of(*range(50)))
        await here.settle()
        assert here.metric("otelcol_loadbalancer_backend_outcome") == {
            f"endpoint={backends[0].name},exporter=load_balancing,success=false": 1,
            f"endpoint={backends[1].name},exporter=load_balancing,success=true": 1,
        }
        latencies = here.metric("otelcol_loadbalancer_backend_latency_count")
        assert latencies == {f"endpoint={each.name},exporter=load_balancing": 1 for each in backends}
