"""Leader election: at most one leads, whatever the API server does, and somebody does."""

import asyncio
import random
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_kubernetes.errors import StatusError, Unreachable
from podtrail_kubernetes.leader_election import (
    ElectionTiming,
    LeaderElector,
    LeadershipLost,
    Lease,
    LeaseLock,
)
from podtrail_kubernetes.rest_client import RestClient


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer whenever nothing else is to be done."""

    def __init__(self) -> None:
        self.virtual = 1000.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        return self.virtual


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._loop.virtual += timeout
        return super().select(0)


def virtually(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test())


class Trouble:
    """How the requests of one candidate go: each takes a while, and may fail before or after it has its effect."""

    def __init__(self, seed: int, worst: float) -> None:
        self._rng = random.Random(seed)
        self._worst = worst

    async def around(self, act: Callable[[], Lease | None]) -> Lease | None:
        await asyncio.sleep(self._rng.random() ** 4 * 20 * self._worst)
        if self._rng.random() < self._worst * 0.4:
            raise Unreachable("connection reset before")
        result = act()
        await asyncio.sleep(self._rng.random() ** 4 * 20 * self._worst)
        if self._rng.random() < self._worst * 0.4:
            raise Unreachable("connection reset after")
        return result


class Store:
    """A Lease in memory, with optimistic concurrency as etcd's."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self._version = 0

    def seen_by(self, trouble: Trouble) -> "View":
        return View(self, trouble)

    def write(self, spec: Mapping[str, Any]) -> Lease:
        self._version += 1
        self.lease = {"metadata": {"resourceVersion": str(self._version)}, "spec": dict(spec)}
        return self.lease


class View:
    """The store as one candidate reaches it."""

    def __init__(self, store: Store, trouble: Trouble) -> None:
        self._store = store
        self.trouble = trouble

    async def get(self) -> Lease | None:
        return await self.trouble.around(lambda: self._store.lease)

    async def create(self, spec: Mapping[str, Any]) -> Lease:
        return await self._change(None, spec)

    async def replace(self, lease: Lease, spec: Mapping[str, Any]) -> Lease:
        return await self._change(lease["metadata"]["resourceVersion"], spec)

    async def _change(self, version: str | None, spec: Mapping[str, Any]) -> Lease:
        def act() -> Lease:
            held = self._store.lease
            if (held["metadata"]["resourceVersion"] if held else None) != version:
                raise StatusError(409, "Conflict", "changed meanwhile")
            return self._store.write(spec)

        written = await self.trouble.around(act)
        assert written is not None
        return written


def candidate(
    store: Store, name: str, seed: int = 0, worst: float = 0.0, timing: ElectionTiming | None = None
) -> LeaderElector:
    """Return a candidate whose wall clock is years off those of the others."""
    wall = datetime(2020 + len(name) * 3 + ord(name[-1]) % 7, 1, 1, tzinfo=UTC)
    return LeaderElector(store.seen_by(Trouble(seed, worst)), name, random.Random(seed), lambda: wall, timing)


async def forever() -> None:
    await asyncio.Event().wait()


async def after(seconds: float, then: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await then()


SLOW = ElectionTiming(60, 40, 2)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.2, 0.5, 0.9]), st.sampled_from([None, SLOW]))
def test_never_two_lead_and_in_good_times_somebody_does(seed: int, worst: float, other: ElectionTiming | None) -> None:
    """Also with clocks that differ by years, and while replicas of two configurations run."""
    timings = (None, other, None)

    async def test() -> None:
        store, leading, led = Store(), set[str](), []

        async def work(name: str) -> None:
            assert not leading, f"{leading} and {name} at the same time"
            leading.add(name)
            led.append(name)
            try:
                # Whoever leads is sometimes stopped, as processes are.
                await asyncio.sleep(random.Random(f"{seed} {len(led)}").expovariate(1 / 60))
            finally:
                leading.discard(name)

        async def process(name: str, number: int) -> None:
            while True:  # a process that ends is started again
                with suppress(LeadershipLost):
                    await candidate(store, name, seed + number, worst, timings[number]).lead(lambda: work(name))
                await asyncio.sleep(1)

        tasks = [asyncio.create_task(process(name, number)) for number, name in enumerate(("a", "b", "c"))]
        done, _ = await asyncio.wait(tasks, timeout=1800, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in done:
            task.result()
        assert worst > 0.4 or len(led) > 8

    virtually(test)


@pytest.mark.parametrize("timing", [ElectionTiming(), SLOW])
def test_a_leader_that_is_cut_off_stops_before_another_begins(timing: ElectionTiming) -> None:
    async def test() -> None:
        store, loop = Store(), asyncio.get_running_loop()
        times: dict[str, float] = {}
        view = store.seen_by(Trouble(0, 0.0))
        first = LeaderElector(view, "first", random.Random(0), timing=timing)

        async def cut_off() -> None:
            await asyncio.sleep(30)
            view.trouble = Trouble(0, 1e9)  # every request hangs
            await forever()

        async def second() -> None:
            await candidate(store, "second").lead(begin)

        async def begin() -> None:
            times["second begins"] = loop.time()

        other = asyncio.create_task(after(10, second))
        with pytest.raises(LeadershipLost, match=rf"^the lease could not be renewed for {timing.renew_deadline:g} s$"):
            await first.lead(cut_off)
        times["first stops"] = loop.time()
        await other
        assert times["first stops"] < times["second begins"] < times["first stops"] + timing.lease_duration

    virtually(test)


def test_a_leader_that_is_asked_to_stop_gives_the_lease_back_at_once() -> None:
    async def test() -> None:
        store, loop = Store(), asyncio.get_running_loop()
        task = asyncio.create_task(candidate(store, "first").lead(forever))
        await asyncio.sleep(20)
        stopped = loop.time()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert store.lease is not None
        assert store.lease["spec"]["holderIdentity"] == ""
        assert store.lease["spec"]["leaseDurationSeconds"] == 1
        await candidate(store, "second").lead(lambda: asyncio.sleep(0))
        assert loop.time() == stopped
        assert store.lease["spec"]["leaseTransitions"] == 1

    virtually(test)


def test_a_leader_whose_lease_is_taken_by_force_stops() -> None:
    async def test() -> None:
        store = Store()
        election = candidate(store, "first")

        async def steal() -> None:
            store.write({"holderIdentity": "thief", "leaseDurationSeconds": 15})
            await forever()

        with pytest.raises(LeadershipLost, match=r"^the lease is held by thief$"):
            await election.lead(lambda: after(5, steal))
        assert not election.leading
        assert not election.may_report

    virtually(test)


@pytest.mark.control_plane
async def test_on_a_real_api_server_a_crashed_leader_is_followed(control_plane: Any, namespace: str) -> None:
    short = ElectionTiming(lease_duration=6.0, renew_deadline=5.0, retry_period=0.2)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/podtrail-scheduler"

    client = await RestClient.open(control_plane.kubeconfig, agent="podtrail-tests")
    store = LeaseLock(client, namespace, "podtrail-scheduler")
    # What a process leaves that held the Lease and crashed.
    await store.create({"holderIdentity": "crashed", "leaseDurationSeconds": 15, "leaseTransitions": 3})
    elections = [LeaderElector(store, name, random.Random(name), timing=short) for name in ("first", "second")]
    leaders: asyncio.Queue[str] = asyncio.Queue()

    async def lead(election: LeaderElector, name: str) -> None:
        await election.lead(lambda: work(name))

    async def work(name: str) -> None:
        await leaders.put(name)
        await forever()

    tasks = {
        name: asyncio.create_task(lead(election, name))
        for name, election in zip(("first", "second"), elections, strict=True)
    }
    leader = await asyncio.wait_for(leaders.get(), 60)
    lease = await client.request("GET", path)
    assert lease["spec"]["holderIdentity"] == leader
    assert lease["spec"]["leaseTransitions"] == 4
    tasks[leader].cancel()
    follower = await asyncio.wait_for(leaders.get(), 60)
    assert follower != leader
    tasks[follower].cancel()
    await asyncio.wait(tasks.values())
    assert (await client.request("GET", path))["spec"]["holderIdentity"] == ""
    await client.close()
