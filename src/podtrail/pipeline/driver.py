"""The asynchronous edge of a pipeline: hands batches to its chain, keeps its timer, carries what leaves to the queues.

All steps of a pipeline happen under one lock, in the order in which they came: one `now` a step. A long expiry is done
in slices, with the event loop served between them.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace

from podtrail.component import Account, Lost, Observer, Refused
from podtrail.otlp import Batch
from podtrail.pipeline.chain import SLICE_SPANS, Chain
from podtrail.pipeline.clock import Clock
from podtrail.pipeline.sending import SendingQueue

_NANOSECONDS = 1_000_000_000
_MOST_WAITING = 64 << 20
"""Bytes of batches that may wait at an entrance at once: as much as one request may have. A single batch always may."""


class Outlet:
    """One exporter's queue as a pipeline sees it, with the pipeline's share of its account."""

    def __init__(self, queue: SendingQueue, exporter: str) -> None:
        self.queue = queue
        self.exporter = exporter
        self.account = Account()
        self.missed = 0
        """Spans that left the pipeline before this exporter joined it (on reload)."""


class Lag:
    """How late a pipeline is, for its processors, who are told only when their work was due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.chain: Chain | None = None
        """The pipeline's; made after the processors that ask."""

    def __call__(self) -> int:
        """Return by how many nanoseconds the deadline that is being served has passed; 0 when none is."""
        due = self.chain.serving if self.chain else None
        return 0 if due is None else max(0, self._clock.now() - due)


class Driver:
    """Runs one pipeline's chain live."""

    def __init__(
        self, id: str, chain: Chain, outlets: Sequence[Outlet], observers: Sequence[Observer], clock: Clock
    ) -> None:
        self.id = id
        self.chain = chain
        self.outlets = tuple(outlets)
        self.lock = asyncio.Lock()
        self.reached = 0
        """The latest time that the chain was told: nothing comes before it, even if its timer was early."""
        self._observers = tuple(observers)
        self._clock = clock
        self._earlier = asyncio.Event()
        self._armed: int | None = None

    async def run(self) -> None:
        """Serve deadlines until cancelled. One timer is armed, and re-armed only when an earlier deadline appears."""
        while True:
            due = self._armed = self.chain.deadline()
            self._earlier.clear()
            if self.chain.outbox:
                due = None
            else:
                wait = None if due is None else max(0, due - self._clock.now()) / _NANOSECONDS
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._earlier.wait(), wait)
                    due = None
            if due is not None or self.chain.outbox:
                async with self.lock:
                    # A timer that fires early must not find its deadline "not yet due".
                    await self.advance(max(self._clock.now(), due or 0))

    def wake(self) -> None:
        """Have `run` look: something waits in the outbox."""
        self._earlier.set()

    async def advance(self, now: int) -> None:
        """Do all that is due by `now`; the lock is held by the caller."""
        self.reached = max(self.reached, now)
        while self.chain.advance(now, SLICE_SPANS):
            await self.carry()
            await asyncio.sleep(0)
        await self.carry()

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

    def add(self, batch: Batch, now: int) -> int:
        """Hand over a batch that was admitted; return the spans that a processor's failure has cost.

        What leaves is in the outbox, for `carry`. The caller holds the lock.
        """
        lost = self.chain.add(batch, now)
        due = self.chain.deadline()
        if due is not None and (self._armed is None or due < self._armed):
            self._earlier.set()
        return lost

    async def drain(self, seconds: float, *, patient: bool = False) -> None:
        """Shut down: decide what is undecided and put everything into the queues within `seconds`.

        When `patient` there are `seconds` for every wait for room in a queue.
        """
        now = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(seconds) as limit, self.lock:
                self.chain.drain(max(self._clock.now(), self.reached))
                await self.carry((lambda: limit.reschedule(now() + seconds)) if patient else None)
        except TimeoutError:
            # A queue that blocks never got room: what is left is lost, and said to be.
            for batch in self.chain.outbox:
                self.chain.account.drop("shutdown", batch.span_count)
            self.chain.outbox.clear()

    async def carry(self, before_wait: Callable[[], None] | None = None) -> None:
        """Bring what left the chain to the queues, waiting for room where they block; the caller holds the lock."""
        while not self.carry_now():
            for outlet in self.outlets:
                while outlet.queue.blocks and not outlet.queue.has_room(self.chain.outbox[0]):
                    if before_wait is not None:
                        before_wait()
                    await outlet.queue.room()

    def carry_now(self) -> bool:
        """Bring what left the chain to the queues as far as they have room; return whether that was all."""
        outbox = self.chain.outbox
        while outbox:
            batch = outbox[0]
            if any(outlet.queue.blocks and not outlet.queue.has_room(batch) for outlet in self.outlets):
                return False
            for observer in self._observers:
                observer.observe(self.id, batch)
            for outlet in self.outlets:
                outlet.queue.offer(batch, outlet.account)
            outbox.popleft()
        return True


class Entrance:
    """The `consume` of a receiver: all pipelines that it feeds take a batch, or none does.

    On reload it is shut, made to lead to other pipelines, and open again; whoever comes meanwhile waits.
    """

    def __init__(self, drivers: Sequence[Driver], clock: Clock) -> None:
        self._drivers = tuple(drivers)
        self._clock = clock
        self._open = asyncio.Event()
        self._open.set()
        self._waiting = 0

    def shut(self) -> None:
        """Let nobody in any more."""
        self._open.clear()

    async def idle(self, seconds: float) -> bool:
        """After `shut`: wait until nobody is inside; return whether that was so within the time."""
        try:
            async with asyncio.timeout(seconds):
                for driver in self._drivers:
                    async with driver.lock:
                        pass
        except TimeoutError:
            return False
        return True

    def lead_to(self, drivers: Sequence[Driver]) -> None:
        """Open, to these pipelines from now on."""
        self._drivers = tuple(drivers)
        self._open.set()

    def ask(self) -> None:
        """Raise `Refused` when a pipeline takes nothing now, whatever it is."""
        now = self._now()
        for driver in self._drivers:
            driver.chain.ask(now)

    async def __call__(self, batch: Batch) -> None:
        """Hand a batch over, waiting for room.

        Who cancels this has handed over nothing: once a batch is taken, nothing is waited for any more.

        Raises:
            Refused: a pipeline does not want it now.
            Lost: a processor failed on it.
        """
        self._admit(batch, self._now())  # what waits takes memory: it is not let into the line without being asked
        with self._in_line(batch):
            async with AsyncExitStack() as locks:
                await self._enter(locks)
                drivers = self._drivers
                try:
                    now = self._now()
                    for driver in drivers:
                        now = await driver.make_room(now)
                    for driver in drivers:
                        await driver.advance(now)
                    self._add(batch, now)
                finally:
                    self._carry_on(drivers)

    @contextmanager
    def _in_line(self, batch: Batch) -> Iterator[None]:
        size = batch.size
        if self._waiting and self._waiting + size > _MOST_WAITING:
            raise Refused(f"{self._waiting >> 20} MiB wait for the pipelines already")
        self._waiting += size
        try:
            yield
        finally:
            self._waiting -= size

    async def _enter(self, locks: AsyncExitStack) -> None:
        while True:
            await self._open.wait()
            drivers = self._drivers
            for driver in drivers:
                await locks.enter_async_context(driver.lock)
            if self._open.is_set() and drivers is self._drivers:
                return
            await locks.aclose()

    def take(self, batch: Batch) -> bool:
        """Hand a batch over if nothing has to be waited for; return whether it was. Raises as a call does."""
        if not self._open.is_set() or any(driver.lock.locked() for driver in self._drivers):
            return False
        now = self._now()
        for driver in self._drivers:
            chain = driver.chain
            if chain.advance(now, SLICE_SPANS) or chain.blocked or not driver.carry_now():
                return False
        try:
            self._add(batch, now)
        finally:
            self._carry_on(self._drivers)
        return True

    @staticmethod
    def _carry_on(drivers: Sequence[Driver]) -> None:
        """Bring away what has left the pipelines; what there is no room for, they bring away themselves."""
        for driver in drivers:
            if not driver.carry_now():
                driver.wake()

    def _now(self) -> int:
        return max([self._clock.now(), *[driver.reached for driver in self._drivers]])

    def _admit(self, batch: Batch, now: int) -> None:
        for driver in self._drivers:
            driver.chain.admit(batch, now)

    def _add(self, batch: Batch, now: int) -> None:
        self._admit(batch, now)
        if not batch.arrived:
            batch = replace(batch, arrived=now)
        lost = sum([driver.add(batch, now) for driver in self._drivers])
        if lost:
            raise Lost(lost)
