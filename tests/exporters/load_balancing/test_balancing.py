"""Five backends that come and go: each trace whole on one of them, each span once."""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import grpc
from podtrail_exporters.load_balancing.ring import Ring

from podtrail.component import Ledger
from tests.exporters.load_balancing.balanced import balancing, batch_of, gateways, trace, until, where


async def test_each_trace_goes_to_its_backend_on_the_ring() -> None:
    async with gateways(5) as backends, balancing(backends) as here:
        for first in (0, 2, 4):
            here.offer(batch_of(*range(200), first=first))
        await here.settle()
        assert here.ledger == Ledger(delivered=1200)
        ring = Ring([each.name for each in backends])
        for number in range(200):
            (at,) = where(backends)[trace(number)]
            assert backends[at].name == ring.backend(crc32(trace(number)))
        assert {count for each in backends for count in each.spans.values()} == {1}
        assert all(each.spans for each in backends)


async def test_a_backend_that_is_down_sheds_to_the_next_and_comes_back() -> None:
    async with gateways(5) as backends, balancing(backends) as here:
        here.offer(batch_of(*range(100)))
        await here.settle()
        dead, alive = backends[0], backends[1:]
        before = where(backends)
        await dead.stop()
        dead.spans.clear()
        here.offer(batch_of(*range(200), first=10))
        await here.settle()
        assert here.ledger == Ledger(delivered=600)
        rest = Ring([each.name for each in alive])
        moved = [number for number in range(100) if before[trace(number)] == {0}]
        assert moved
        for number in moved:
            (at,) = where(backends)[trace(number)]
            assert backends[at].name == rest.backend(crc32(trace(number)))
        assert all(where(backends)[trace(n)] == before[trace(n)] for n in range(100) if n not in moved)
        assert here.metric("podtrail_loadbalancer_backends_down") == {"exporter=load_balancing": 1}
        spans = here.metric("podtrail_loadbalancer_moved_spans_total")
        assert spans["exporter=load_balancing,reason=down"] >= 2 * len(moved)

        await dead.start()
        await until(lambda: here.metric("podtrail_loadbalancer_backends_down") == {"exporter=load_balancing": 0})
        # Traces that moved stay where they are; new ones go where the whole ring has them.
        here.offer(batch_of(*range(400), first=20))
        await here.settle()
        places = where(backends)
        assert all(len(places[trace(number)]) == 1 for number in range(400))
        assert not {trace(number) for number in moved} & dead.traces
        whole = Ring([each.name for each in backends])
        for number in range(200, 400):
            (at,) = places[trace(number)]
            assert backends[at].name == whole.backend(crc32(trace(number)))
        assert dead.traces


async def test_a_backend_that_stands_still_sheds_to_the_next() -> None:
    async with gateways(5) as backends, balancing(backends, otlp={"timeout": "5s"}) as here:
        backends[2].gate.clear()
        here.offer(batch_of(*range(100)))
        await here.settle()
        assert here.ledger == Ledger(delivered=200)
        alive = [each for each in backends if each is not backends[2]]
        assert sum(each.spans.total() for each in alive) == 200
        assert all(len(places) == 1 for places in where(alive).values())
        assert here.metric("podtrail_loadbalancer_backends_down") == {"exporter=load_balancing": 1}


async def test_a_busy_backend_keeps_its_traces_and_its_sender_waits() -> None:
    async with gateways(5) as backends, balancing(backends) as here:
        backends[3].answer = (grpc.StatusCode.UNAVAILABLE, "the queue is full")
        here.offer(batch_of(*range(100)))
        await until(lambda: backends[3].requests >= 3)
        assert here.queue.held() == 200
        assert here.metric("podtrail_loadbalancer_backends_down") == {"exporter=load_balancing": 0}
        taken = {number: each.requests for number, each in enumerate(backends) if number != 3}
        assert set(taken.values()) == {1}
        backends[3].answer = b""
        await here.settle()
        assert here.ledger == Ledger(delivered=200)
        assert {count for each in backends for count in each.spans.values()} == {1}
        assert all(len(places) == 1 for places in where(backends).values())


async def test_a_full_queue_turns_senders_away_while_a_backend_is_busy() -> None:
    queue = {"queue_size": 100, "sizer": "items"}
    async with gateways(2) as backends, balancing(backends, sending_queue=queue) as here:
        backends[0].answer = backends[1].answer = (grpc.StatusCode.UNAVAILABLE, "later")
        here.offer(batch_of(*range(50)))
        assert not here.queue.has_room(batch_of(1), here.ledger)
        backends[0].answer = backends[1].answer = b""
        await here.settle()
        assert here.queue.has_room(batch_of(1), here.ledger)
        assert here.ledger == Ledger(delivered=100)


async def test_a_slow_backend_holds_up_no_other() -> None:
    async with gateways(5) as backends, balancing(backends) as here:
        backends[4].gate.clear()
        for first in range(0, 60, 2):
            here.offer(batch_of(*range(50), first=first))
        others = [each for each in backends if each is not backends[4]]
        ring = Ring([each.name for each in backends])
        theirs = sum(ring.backend(crc32(trace(number))) != backends[4].name for number in range(50)) * 60
        await until(lambda: sum(each.spans.total() for each in others) >= theirs)
        backends[4].gate.set()
        await here.settle()
        assert here.ledger == Ledger(delivered=3000)


async def test_what_a_backend_refuses_for_good_is_counted_once_and_the_rest_is_delivered(caplog: Any) -> None:
    async with gateways(3) as backends, balancing(backends) as here:
        backends[0].answer = (grpc.StatusCode.INVALID_ARGUMENT, "not like this")
        here.offer(batch_of(*range(60)))
        await here.settle()
        refused = 120 - sum(each.spans.total() for each in backends)
        assert refused > 0
        assert here.ledger == Ledger(delivered=120 - refused, rejected=refused)
    assert f"{backends[0].name} rejected {refused} spans: INVALID_ARGUMENT: not like this" in caplog.text


async def test_all_backends_down_are_waited_for() -> None:
    async with gateways(3) as backends, balancing(backends) as here:
        for each in backends:
            await each.stop()
        here.offer(batch_of(*range(50)))
        await until(lambda: here.metric("podtrail_loadbalancer_backends_down") == {"exporter=load_balancing": 3})
        for each in backends:
            await each.start()
        await here.settle()
        assert here.ledger == Ledger(delivered=100)
        assert {count for each in backends for count in each.spans.values()} == {1}


class Token:
    """An authenticator of clients."""

    renews = False

    def credentials(self) -> Mapping[str, str]:
        return {"authorization": "Bearer secret"}


async def test_every_backend_is_shown_what_the_authenticator_gives() -> None:
    async with gateways(3) as backends:
        here = balancing(backends, otlp={"auth": {"authenticator": "bearertokenauth"}})
        here.exporter.authenticate_by({"bearertokenauth": Token()})
        async with here:
            here.offer(batch_of(*range(60)))
            await here.settle()
        assert {each.metadata["authorization"] for each in backends} == {"Bearer secret"}
