"""Consumers that come, go, are killed and lose touch, on partitions that are shared out anew each time."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b

from tests.reliability.simulation.partitions.fleet_setup import FleetSetup
from tests.reliability.simulation.partitions.partition_log import PartitionLog, partition_log
from tests.reliability.simulation.partitions.simulated_consumer import SimulatedConsumer
from tests.reliability.simulation.virtual_loop import VirtualLoop

_QUIET_AT_THE_END = 90.0
"""Seconds in which nothing happens any more: all is decided and delivered then."""
_EVENTS = ("join", "leave", "kill", "kill", "lose touch", "eager", "cooperative")


@dataclass
class FleetOutcome:
    """What has become of it."""

    logs: list[PartitionLog]
    happened: Counter[str]
    uneven: list[str]
    """Ledgers that do not balance."""
    undecided: int
    reloaded: float | None
    """When other policies came."""

    @property
    def digest(self) -> str:
        """Tells what was delivered, and when."""
        told = [(log.number, each.key, each.time, each.epoch) for log in self.logs for each in log.deliveries]
        return blake2b(repr(told).encode(), digest_size=8).hexdigest()


class Fleet:
    """All consumers of a group."""

    def __init__(self, setup: FleetSetup) -> None:
        self.setup = setup
        self.rng = random.Random(f"fleet {setup.seed}")
        self.settings = setup.settings()
        self.logs: list[PartitionLog] = []
        self.living: list[SimulatedConsumer] = []
        self.happened: Counter[str] = Counter()
        self.uneven: list[str] = []
        self.reloaded: float | None = None
        self._made = 0

    async def run(self) -> FleetOutcome:
        setup, loop = self.setup, asyncio.get_running_loop()
        self._add_partitions(setup.partitions)
        for _ in range(setup.consumers):
            await self._join()
        await self._share_out(eager=True)
        events = [(self.rng.uniform(1, setup.seconds), self.rng.choice(_EVENTS)) for _ in range(setup.events)]
        if setup.added:
            events.append((self.rng.uniform(1, setup.seconds / 2), "partitions are added"))
        if setup.kind == "reloaded":
            events.append((self.rng.uniform(1, setup.seconds / 2), "reload"))
        for at, what in sorted(events):
            await asyncio.sleep(max(0.0, at - loop.time()))
            self.happened[what] += 1
            await self._happens(what)
        await asyncio.sleep(max(0.0, setup.seconds - loop.time()) + _QUIET_AT_THE_END)
        undecided = sum(owned.partition.undecided for each in self.living for owned in each.owned.values())
        for consumer in self.living:
            self._look_at_ledgers(consumer)
            await consumer.die()
        return FleetOutcome(self.logs, self.happened, self.uneven, undecided, self.reloaded)

    def _look_at_ledgers(self, consumer: SimulatedConsumer) -> None:
        for balance in consumer.process.balances():
            if balance.missing:
                self.uneven.append(f"consumer {consumer.number}: {balance}")

    def _add_partitions(self, count: int) -> None:
        setup, begin = self.setup, asyncio.get_running_loop().time()
        for number in range(len(self.logs), len(self.logs) + count):
            self.logs.append(partition_log(number, setup.seed, setup.records, begin, setup.seconds))

    async def _join(self) -> None:
        consumer = SimulatedConsumer(self._made, self.setup, self.settings)
        self._made += 1
        await consumer.start()
        self.living.append(consumer)

    async def _happens(self, what: str) -> None:
        if what in ("leave", "kill") and len(self.living) > 1:
            gone = self.living.pop(self.rng.randrange(len(self.living)))
            if what == "leave":
                for number in list(gone.owned):
                    await gone.revoke(number)
                self._look_at_ledgers(gone)
            await gone.die()
        elif what == "join":
            await self._join()
        elif what == "lose touch":  # it goes on as if nothing had been, until it is told at its next commit
            lost = self.rng.choice(self.living)
            others = [each for each in self.living if each is not lost]
            for number, owned in list(lost.owned.items()) if others else ():
                taker = self.rng.choice(others)
                if number in taker.owned:
                    taker.forget(number)
                await taker.assign(owned.log)
        elif what == "partitions are added":
            self._add_partitions(self.setup.added)
        elif what == "reload":
            self.reloaded, self.settings = asyncio.get_running_loop().time(), self.setup.other_settings()
            for consumer in self.living:
                consumer.process.reload(self.settings)
            return
        await self._share_out(eager=what == "eager")

    async def _share_out(self, *, eager: bool) -> None:
        """Give every partition an owner; when not eager, those move that have none or that others lack."""
        owners = {
            number: consumer
            for consumer in self.living
            for number, owned in consumer.owned.items()
            if not owned.is_lost
        }
        fair = -(-len(self.logs) // len(self.living))
        load = Counter(owner.number for owner in owners.values())
        moving = set(range(len(self.logs))) - owners.keys()
        for number, owner in owners.items():
            if eager or load[owner.number] > fair:
                load[owner.number] -= 1
                moving.add(number)
                if number in owner.owned:
                    await owner.revoke(number)
        self.happened["partitions moved"] += len(moving)
        for number in sorted(moving):
            taker = min(self.living, key=lambda each: (load[each.number], each.number))
            load[taker.number] += 1
            if number in taker.owned:  # it does not know yet that it had lost it
                taker.forget(number)
            await taker.assign(self.logs[number])


def simulated(setup: FleetSetup) -> FleetOutcome:
    """Run a simulation in virtual time."""
    loop = VirtualLoop(0.0, lambda: None, most_rounds=10**9)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(Fleet(setup).run())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
