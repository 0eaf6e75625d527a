"""The asynchronous edge of a pipeline: hands batches to its chain, keeps its timer, carries what leaves to the queues.

All steps of a pipeline happen under one lock, in the order in which they came: one `now` a step. A long expiry is done
in slices, with the event loop served between them.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from podtrail.component import Account, Consume, Observer
from podtrail.otlp import Batch
from podtrail.pipeline.chain import Chain
from podtrail.pipeline.clock import Clock
from podtrail.pipeline.sending import SendingQueue

SLICE_SPANS = 8192
"""Spans decided before the event loop gets its turn: a few milliseconds."""

_NANOSECONDS = 1_000_000_000


class Outlet:
    """One exporter's queue as a pipeline sees it, with the pipeline's share of its account."""

    def __init__(self, queue: SendingQueue, exporter: str) -> None:
        self.queue = queue
        self.exporter = exporter
        self.account = Account()
        self.missed = 0
        """Spans that left the pipeline before this exporter joined it (on reload)."""


class Driver:
    """Runs one pipeline's chain live."""

    def __init__(
        self, id: str, chain: Chain, outlets: Sequence[Outlet], observers: Sequence[Observer], clock: Clock
    ) -> None:
        self.id = id
        self.chain = chain
        self.outlets = tuple(outlets)
        self.lock = asyncio.Lock()
        self._observers = tuple(observers)
        self._clock = clock
        self._earlier = asyncio.Event()
        self._armed: int | None = None

    async def run(self) -> None:
        """Serve deadlines until cancelled. One timer is armed, and re-armed only when an earlier deadline appears."""
        while True:
            due = self._armed = self.chain.deadline()
            self._earlier.clear()
            wait = None if due is None else max(0, due - self._clock.now()) / _NANOSECONDS
            try:
                await asyncio.wait_for(self._earlier.wait(), wait)
            except TimeoutError:
                async with self.lock:
                    # A timer that fires early must not find its deadline "not yet due".
                    await self.advance(max(self._clock.now(), due or 0))

    async def advance(self, now: int) -> None:
        """Do all that is due by `now`; the lock is held by the caller."""
        while self.chain.advance(now, SLICE_SPANS):
            await self._carry()
            await asyncio.sleep(0)
        await self._carry()

    async def make_room(self, now: int) -> int:
        """Do what is due, wait until the chain can take a batch and return that time; the caller holds the lock."""
        await self.advance(now)
        while self.chain.blocked:
            due = self.chain.deadline()
            assert due is not None, "a processor without room must have a deadline"
            await asyncio.sleep(max(0, due - self._clock.now()) / _NANOSECONDS)
            now = max(due, self._clock.now())
            await self.advance(now)
        return now

    async def add(self, batch: Batch, now: int) -> None:
        """Hand over a batch that was admitted; the lock is held by the caller."""
        self.chain.add(batch, now)
        await self._carry()
        due = self.chain.deadline()
        if due is not None and (self._armed is None or due < self._armed):
            self._earlier.set()

    async def drain(self, seconds: float) -> None:
        """Shut down: decide what is undecided and put everything into the queues within `seconds`."""
        try:
            async with asyncio.timeout(seconds), self.lock:
                self.chain.drain(self._clock.now())
                await self._carry()
        except TimeoutError:
            # A queue that blocks never got room: what is left is lost, and said to be.
            for batch in self.chain.outbox:
                self.chain.account.drop("shutdown", batch.span_count)
            self.chain.outbox.clear()

    async def _carry(self) -> None:
        outbox = self.chain.outbox
        while outbox:
            batch = outbox[0]
            for outlet in self.outlets:
                while outlet.queue.blocks and not outlet.queue.has_room(batch):
                    await outlet.queue.room()
            for observer in self._observers:
                observer.observe(self.id, batch)
            for outlet in self.outlets:
                outlet.queue.offer(batch, outlet.account)
            outbox.popleft()


def admission(drivers: Sequence[Driver], clock: Clock) -> Consume:
    """Return the `consume` of a receiver that feeds these pipelines: all of them take a batch, or none does."""

    async def consume(batch: Batch) -> None:
        async with AsyncExitStack() as locks:
            for driver in drivers:
                await locks.enter_async_context(driver.lock)
            now = clock.now()
            for driver in drivers:
                now = await driver.make_room(now)
            for driver in drivers:
                driver.chain.admit(batch, now)
            if not batch.arrived:
                batch = replace(batch, arrived=now)
            for driver in drivers:
                await driver.advance(now)
                await driver.add(batch, now)

    return consume
