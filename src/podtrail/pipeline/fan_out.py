"""The fan-out of a receiver to its pipelines: all of them take a batch, or none does."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import Protocol

from podtrail.component import Lost, Refused
from podtrail.component.refusals import RefusalWatch
from podtrail.otlp import Batch
from podtrail.pipeline.chain import SLICE_SPANS
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver, Outlet, not_before, obstacle, passing, refusal
from podtrail.storage import StorageError

DEADLINE = 4.0
"""Seconds that a sender waits for room before it is refused: less than it waits itself (a Collector 5, an SDK 10)."""
_MOST_WAITING = 64 << 20
"""Bytes of batches that may wait for the pipelines at once: as much as one request may have. A single batch always may.
"""


class Log(Protocol):
    """A log of arrivals: it hands over what it has written."""

    @property
    def writing(self) -> bool:
        """Whether it waits for the disk."""

    async def take(self, receiver: str, batch: Batch, came: int, drivers: Sequence[Driver]) -> Outlet | Driver | None:
        """Write a batch and hand it to these pipelines; return None, or what it has to wait for before it is tried.

        Raises:
            Refused: a pipeline does not want it now, or it can't be written.
            Lost: a processor failed on it.
        """

    async def idle(self) -> None:
        """Return when nothing is being written."""


class FanOutConsumer:
    """What a receiver feeds: all pipelines that it feeds take a batch, or none does.

    Nobody waits for room with a lock in hand.
    On reload it is shut, made to lead to other pipelines, and open again; whoever comes meanwhile waits.
    """

    def __init__(
        self,
        drivers: Sequence[Driver],
        clock: PipelineClock,
        deadline: float | None = DEADLINE,
        *,
        receiver: str = "",
        log: Log | None = None,
        refusals: RefusalWatch | None = None,
    ) -> None:
        """Lead from a receiver to pipelines.

        Args:
            drivers: of the pipelines.
            clock: the pipelines'.
            deadline: the seconds that a batch waits for room, None for as long as it takes.
            receiver: its id.
            log: where it is written first, None when no pipeline asks for that.
            refusals: notes which batches are refused and accepted.
        """
        self._receiver = receiver
        self._refusals = refusals or RefusalWatch()
        self._log = log
        self._drivers = tuple(drivers)
        self._persistent = _persistent(drivers)
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
                if self._log is not None:
                    await self._log.idle()
                for driver in self._drivers:
                    async with driver.lock:
                        pass
        except TimeoutError:
            return False
        return True

    def lead_to(self, drivers: Sequence[Driver], log: Log | None) -> None:
        """Open, to these pipelines from now on."""
        self._drivers = tuple(drivers)
        self._log = log
        self._persistent = _persistent(drivers)
        self._open.set()

    def ask(self) -> None:
        """Ask whether every pipeline takes anything now.

        Raises:
            Refused: one takes nothing, whatever it is.
        """
        now = self._now()
        with self._noting_refusal():
            for driver in self._drivers:
                driver.chain.ask(now)

    @contextmanager
    def _noting_refusal(self) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            self._refusals.refused(str(refused), self._clock.now())
            raise

    async def __call__(self, batch: Batch) -> None:
        """Hand a batch over, waiting for room.

        Who cancels this has handed over nothing, unless it was being written: otherwise, once a batch is taken, nothing
        is waited for any more.

        Raises:
            Refused: a pipeline does not want it now, or its queue can't write it.
            Lost: a processor failed on it.
        """
        with self._noting_refusal():
            await self._hand_over(batch)
        self._refusals.accepted()

    async def _hand_over(self, batch: Batch) -> None:
        came = self._now()
        self._admit(batch, came)  # what waits takes memory: it is not let into the line without being asked
        in_the_way: Outlet | Driver | None = None
        try:
            with self._in_line(batch):
                async with asyncio.timeout(self._deadline):
                    while (in_the_way := await self._try(batch, came)) is not None:
                        await in_the_way.room()
                        came = self._now()
        except TimeoutError:
            raise self._too_late(in_the_way, batch.span_count) from None
        await self._written(batch.span_count)

    def _too_late(self, in_the_way: Outlet | Driver | None, spans: int) -> Refused:
        if not self._open.is_set():
            return Refused("the pipelines are being swapped")
        if self._log is not None and self._log.writing:
            return Refused("the log of arrivals could not be written in time: its disk hangs")
        return (in_the_way or self._drivers[0]).refuse(spans)

    async def _written(self, spans: int) -> None:
        """Return when what persistent queues were offered is on disk.

        Raises:
            Refused: it is not. They keep it in memory all the same, and it may be delivered twice.
        """
        for outlet in self._persistent:
            try:
                async with asyncio.timeout(self._deadline):
                    await outlet.queue.flush()
            except StorageError:
                raise outlet.refuse(spans) from None
            except TimeoutError:
                raise Refused(f"the sending queue of {outlet.exporter} could not be written in time") from None

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
        while True:
            await self._open.wait()
            log = self._log  # a reload may have put another one there, or none, while this waited
            if log is not None:
                return await log.take(self._receiver, batch, came, self._drivers)
            async with AsyncExitStack() as locks:
                if await self._enter(locks):
                    return await self._try_locked(batch, came)

    async def _try_locked(self, batch: Batch, came: int) -> Outlet | Driver | None:
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

    async def _enter(self, locks: AsyncExitStack) -> bool:
        """Take the locks of all pipelines; return False if a reload has swapped them meanwhile."""
        drivers = self._drivers
        for driver in drivers:
            await locks.enter_async_context(driver.lock)
        return self._open.is_set() and drivers is self._drivers

    def take(self, batch: Batch) -> bool:
        """Hand a batch over if nothing has to be waited for; return whether it was.

        Raises:
            Refused: a pipeline does not want it now.
            Lost: a processor failed on it.
        """
        if self._log is not None or self._persistent or not self._open.is_set():
            return False
        if any(driver.lock.locked() for driver in self._drivers):
            return False
        now = self._now()
        try:
            for driver in self._drivers:
                if driver.chain.advance(now, SLICE_SPANS) or driver.carry() is not None:
                    return False
            with self._noting_refusal():
                taken = self._let_in(batch, now) is None
        finally:
            self._leave(self._drivers)
        if taken:
            self._refusals.accepted()
        return taken

    def _now(self) -> int:
        return self._not_before(self._clock.now())

    def _not_before(self, time: int) -> int:
        return not_before(self._drivers, time)

    def _admit(self, batch: Batch, now: int) -> None:
        for driver in self._drivers:
            driver.chain.admit(batch, now)

    def _let_in(self, batch: Batch, now: int) -> Outlet | Driver | None:
        """Take a batch, or return what it has to wait for."""
        if (in_the_way := obstacle(self._drivers, batch)) is not None:
            return in_the_way
        at_once = passing(self._drivers)
        full = [outlet for driver in at_once for outlet in driver.full(batch)]
        self._admit(batch, now)
        if keeping := [outlet for outlet in full if outlet.to_be_written]:
            raise refusal(keeping, batch.span_count)
        if full and len(full) == sum([len(driver.outlets) for driver in self._drivers]):
            raise refusal(full, batch.span_count)
        if not batch.arrived:
            batch = replace(batch, arrived=now)
        lost = sum([driver.add(batch, now) for driver in self._drivers])
        for driver in self._drivers:
            # What is not held leaves now: those that had room for it take it, however it has grown on the way.
            driver.carry(full if driver in at_once else None)
        if lost:
            raise Lost(lost)
        return None

    @staticmethod
    def _leave(drivers: Sequence[Driver]) -> None:
        """Have the pipelines bring away themselves what there was no room for."""
        for driver in drivers:
            if driver.chain.outbox:
                driver.wake()


def _persistent(drivers: Sequence[Driver]) -> Sequence[Outlet]:
    """Return an outlet to each persistent queue that these pipelines lead to."""
    found = {outlet.queue: outlet for driver in drivers for outlet in driver.outlets if outlet.to_be_written}
    return tuple(found.values())
