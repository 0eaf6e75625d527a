"""The asynchronous edge of a pipeline: hands batches to its chain, keeps its timer, carries what leaves to the queues.

All steps of a pipeline happen under one lock, in the order in which they came: one `now` a step. A long expiry is done
in slices, with the event loop served between them.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace

from podtrail.component import BatchObserver, Ledger, Lost, Refused
from podtrail.otlp import Batch
from podtrail.pipeline.chain import SLICE_SPANS, Chain
from podtrail.pipeline.clock import Clock
from podtrail.pipeline.sending import PATIENCE, SendingQueue

DEADLINE = 4.0
"""Seconds that a sender waits for room before it is refused: less than it waits itself (a Collector 5, an SDK 10)."""
_LOOK_AGAIN = 1.0
_NANOSECONDS = 1_000_000_000
_MOST_WAITING = 64 << 20
"""Bytes of batches that may wait at an entrance at once: as much as one request may have. A single batch always may."""


class Outlet:
    """One exporter's queue as a pipeline sees it, with the pipeline's share of its ledger."""

    def __init__(self, queue: SendingQueue, exporter: str, *, patient: bool = False) -> None:
        """Lead to `queue`; `patient`: all sources of the pipeline are in no hurry, and wait rather than lose."""
        self.queue = queue
        self.exporter = exporter
        self.ledger = Ledger()
        self.missed = 0
        """Spans that left the pipeline before this exporter joined it (on reload)."""
        self.beside: Collection[SendingQueue] = ()
        """The queues of the other exporters that the same receivers feed."""
        self._patience = PATIENCE if patient else queue.patience

    def holds_up(self) -> bool:
        """Say whether what it has no room for is to wait. It never is for a stuck exporter while others take."""
        if self._patience is None:
            return False
        return self.queue.idle < self._patience or all(queue.full for queue in self.beside)

    async def room(self) -> None:
        """Return when something has left, or when it is time to look again whether it is still to be waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await self.queue.room()

    def refuse(self, spans: int) -> Refused:
        """Book spans that are not taken because of this exporter; return what to tell their sender."""
        return refusal([self], spans)


def held_up_by(full: Collection[Outlet]) -> Outlet | None:
    """Return one of the exporters without room that is to be waited for."""
    return next((outlet for outlet in full if outlet.holds_up()), None)


def refusal(full: Collection[Outlet], spans: int) -> Refused:
    """Book spans that are not taken because of exporters without room; return what to tell their sender."""
    queues = {outlet.exporter: outlet.queue for outlet in full}
    for queue in queues.values():
        queue.refuse(spans)
    return Refused(f"the sending queue of {', '.join(queues)} is full")


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
        self, id: str, chain: Chain, outlets: Sequence[Outlet], observers: Sequence[BatchObserver], clock: Clock
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
                await self._serve(due or 0)

    async def _serve(self, due: int) -> None:
        # A timer that fires early must not find its deadline "not yet due".
        while (full := await self._advance_alone(due)) is not None:
            await full.room()

    async def _advance_alone(self, due: int) -> Outlet | None:
        async with self.lock:
            return await self.advance(max(self._clock.now(), due))

    def wake(self) -> None:
        """Have `run` look: something waits in the outbox."""
        self._earlier.set()

    async def advance(self, now: int) -> Outlet | None:
        """Do all that is due by `now`, up to an exporter that holds it up: return that. The caller holds the lock."""
        self.reached = max(self.reached, now)
        more = True
        while (full := self.carry()) is None and more:
            more = self.chain.advance(now, SLICE_SPANS)
            if more:
                await asyncio.sleep(0)
        return full

    async def room(self) -> None:
        """Return when a chain that is `blocked` may have room, or when it is time to look again."""
        due = self.chain.deadline()
        assert due is not None, "a processor without room must have a deadline"
        await asyncio.sleep(min(max(0, due - self._clock.now()) / _NANOSECONDS, _LOOK_AGAIN))

    def refuse(self, spans: int) -> Refused:  # noqa: ARG002 - as an outlet
        """Return what to tell a sender for whose spans a chain that is `blocked` has no room."""
        return Refused(f"pipeline {self.id} has no room")

    def add(self, batch: Batch, now: int) -> int:
        """Hand over a batch that was admitted; return the spans that a processor's failure has cost.

        What leaves is in the outbox, for `carry`. The caller holds the lock.
        """
        lost = self.chain.add(batch, now)
        due = self.chain.deadline()
        if due is not None and (self._armed is None or due < self._armed):
            self._earlier.set()
        return lost

    def full(self, batch: Batch) -> Sequence[Outlet]:
        """Return the exporters that have no room for a batch."""
        return [outlet for outlet in self.outlets if not outlet.queue.has_room(batch, outlet.ledger)]

    async def drain(self) -> None:
        """Shut down: decide what is undecided and put everything into the queues, whatever room they have."""
        async with self.lock:
            self.chain.drain(max(self._clock.now(), self.reached))
            self.carry(full=())

    def carry(self, full: Collection[Outlet] | None = None) -> Outlet | None:
        """Bring what left the chain to the queues, up to an exporter that holds it up: return that.

        Nothing is held up when it is known which exporters are `full`: the others take everything.
        """
        outbox = self.chain.outbox
        while outbox:
            batch = outbox[0]
            if full is None and (outlet := held_up_by(self.full(batch))) is not None:
                return outlet
            for observer in self._observers:
                observer.observe(self.id, batch)
            for outlet in self.outlets:
                outlet.queue.offer(batch, outlet.ledger, at_any_rate=full is not None and outlet not in full)
            outbox.popleft()
        return None


class Entrance:
    """The `consume` of a receiver: all pipelines that it feeds take a batch, or none does.

    Nobody waits for room with a lock in hand.
    On reload it is shut, made to lead to other pipelines, and open again; whoever comes meanwhile waits.
    """

    def __init__(self, drivers: Sequence[Driver], clock: Clock, deadline: float | None = DEADLINE) -> None:
        """Lead to `drivers`; `deadline`: the seconds that a batch waits for room, None for as long as it takes."""
        self._drivers = tuple(drivers)
        self._clock = clock
        self._deadline = deadline
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
        came = self._now()
        self._admit(batch, came)  # what waits takes memory: it is not let into the line without being asked
        in_the_way: Outlet | Driver = self._drivers[0]
        try:
            with self._in_line(batch):
                async with asyncio.timeout(self._deadline):
                    while (obstacle := await self._try(batch, came)) is not None:
                        in_the_way = obstacle
                        await obstacle.room()
                        came = self._now()
        except TimeoutError:
            raise in_the_way.refuse(batch.span_count) from None

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

    async def _try(self, batch: Batch, came: int) -> Outlet | Driver | None:
        async with AsyncExitStack() as locks:
            await self._enter(locks)
            drivers = self._drivers
            # As of when it came: what was not due by then is not decided without it, however late the pipelines are.
            now = self._not_before(came)
            try:
                for driver in drivers:
                    if (full := await driver.advance(now)) is not None:
                        return full
                return self._let_in(batch, now)
            finally:
                self._leave(drivers)

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
        try:
            for driver in self._drivers:
                if driver.chain.advance(now, SLICE_SPANS) or driver.carry() is not None:
                    return False
            return self._let_in(batch, now) is None
        finally:
            self._leave(self._drivers)

    def _now(self) -> int:
        return self._not_before(self._clock.now())

    def _not_before(self, time: int) -> int:
        return max([time, *[driver.reached for driver in self._drivers]])

    def _admit(self, batch: Batch, now: int) -> None:
        for driver in self._drivers:
            driver.chain.admit(batch, now)

    def _let_in(self, batch: Batch, now: int) -> Outlet | Driver | None:
        """Take a batch, or return what it has to wait for. Raises as `__call__` does."""
        for driver in self._drivers:
            if driver.chain.blocked:
                return driver
        passing = [driver for driver in self._drivers if driver.chain.passes_on]
        full = [outlet for driver in passing for outlet in driver.full(batch)]
        if (outlet := held_up_by(full)) is not None:
            return outlet
        self._admit(batch, now)
        if full and len(full) == sum([len(driver.outlets) for driver in self._drivers]):
            raise refusal(full, batch.span_count)
        if not batch.arrived:
            batch = replace(batch, arrived=now)
        lost = sum([driver.add(batch, now) for driver in self._drivers])
        for driver in self._drivers:
            # What is not held leaves now: those that had room for it take it, however it has grown on the way.
            driver.carry(full if driver in passing else None)
        if lost:
            raise Lost(lost)
        return None

    @staticmethod
    def _leave(drivers: Sequence[Driver]) -> None:
        """Have the pipelines bring away themselves what there was no room for."""
        for driver in drivers:
            if driver.chain.outbox:
                driver.wake()
