"""The log of arrivals of all durable pipelines of a store: written first, then handed over."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from podtrail.component import Lost, Refused
from podtrail.durable.owed import Owed
from podtrail.durable.recent import RecentRequests, request_key
from podtrail.durable.records import LoggedArrival
from podtrail.otlp import Batch
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver, Outlet, not_before, obstacle, passing
from podtrail.storage import Journal, StorageError

_LARGEST_COMMIT: Final = 8 << 20
"""Bytes of requests that are written at once, unless a single one is larger."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A batch that waits to be written."""

    receiver: str
    batch: Batch
    came: int
    drivers: Sequence[Driver]
    answer: asyncio.Future[Outlet | Driver | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class ArrivalLog:
    """Has batches written together, and hands them over in that order.

    Pipeline time stands still while something is written: what is replayed meets the chains as it did then.
    """

    def __init__(
        self,
        journal: Journal,
        drivers: Sequence[Driver],
        clock: PipelineClock,
        owed: Owed,
        recent: RecentRequests,
        repeated: Callable[[int], None],
        not_ready: Callable[[], str | None],
        after: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        """Log what goes to these pipelines.

        Args:
            journal: where to.
            drivers: all that the receivers of durable pipelines feed, in an order that all agree on.
            clock: the pipelines'.
            owed: what exporters owe.
            recent: the requests that came lately.
            repeated: told the spans of a request that had been taken before.
            not_ready: asked with all drivers locked why nothing may be written now; None: it may.
            after: called with all drivers locked, when something was written and handed over.
            failed: called with all drivers locked, when the disk took nothing.
        """
        self._journal = journal
        self._drivers = tuple(drivers)
        self._clock = clock
        self._owed = owed
        self._recent = recent
        self._repeated = repeated
        self._not_ready = not_ready
        self._after = after
        self._failed = failed
        self._line: list[_Waiting] = []
        self._leader: asyncio.Task[None] | None = None
        self._writing = False

    @property
    def writing(self) -> bool:
        """Whether it waits for the disk."""
        return self._writing

    async def take(self, receiver: str, batch: Batch, came: int, drivers: Sequence[Driver]) -> Outlet | Driver | None:
        """Write a batch and hand it to these pipelines; return None, or what it has to wait for before it is tried.

        Who cancels this does not know whether it was taken.

        Raises:
            Refused: a pipeline does not want it now, or it can't be written.
            Lost: a processor failed on it.
        """
        waiting = _Waiting(receiver, batch, came, drivers)
        self._line.append(waiting)
        if self._leader is None:
            self._leader = asyncio.create_task(self._lead(), name="log of arrivals")
        return await waiting.answer

    async def idle(self) -> None:
        """Return when nothing is being written."""
        while self._leader is not None:
            await asyncio.wait({self._leader})

    async def _lead(self) -> None:
        group: list[_Waiting] = []
        try:
            while self._line:
                group = self._next_group()
                await self._take_all(group)
        except BaseException as error:
            for waiting in (*group, *self._line):
                if not waiting.answer.done():
                    waiting.answer.set_exception(Refused(f"the log of arrivals failed: {error}"))
            self._line.clear()
            raise
        finally:
            self._leader = None

    def _next_group(self) -> list[_Waiting]:
        size = at = 0
        for at, waiting in enumerate(self._line, 1):  # noqa: B007
            size += waiting.batch.size
            if size >= _LARGEST_COMMIT:
                break
        group, self._line = self._line[:at], self._line[at:]
        return [waiting for waiting in group if not waiting.answer.done()]

    async def _take_all(self, group: Sequence[_Waiting]) -> None:
        async with AsyncExitStack() as locks:
            for driver in self._drivers:
                await locks.enter_async_context(driver.lock)
            # As of when the first of them came: what was not due by then is not decided without it.
            now = not_before(self._drivers, min((waiting.came for waiting in group), default=0))
            full = [held for driver in self._drivers if (held := await driver.advance(now)) is not None]
            admitted = self._admitted(group, now, full)
            if await self._write([arrival for _, arrival, _ in admitted], [waiting for waiting, _, _ in admitted]):
                for waiting, arrival, key in admitted:
                    self._recent.learn(key, now)
                    await self._hand_over(waiting, arrival)
                self._after()
            for driver in self._drivers:
                if driver.chain.outbox:
                    driver.wake()

    def _admitted(
        self, group: Sequence[_Waiting], now: int, full: Sequence[Outlet]
    ) -> list[tuple[_Waiting, LoggedArrival, bytes]]:
        """Return those that are taken now; the others get their answer."""
        admitted: dict[bytes, tuple[_Waiting, LoggedArrival, bytes]] = {}
        for waiting in group:
            batch, key = waiting.batch, request_key(waiting.receiver, waiting.batch)
            if self._recent.knows(key, now):
                self._repeated(batch.span_count)
                _answer(waiting, None)
            elif key in admitted:
                _follow(waiting, admitted[key][0])
                self._repeated(batch.span_count)
            elif (in_the_way := self._obstacle(waiting, full)) is not None:
                _answer(waiting, in_the_way)
            else:
                try:
                    for driver in waiting.drivers:
                        driver.chain.admit(batch, now)
                except (Refused, Lost) as error:
                    _fail(waiting, error)
                else:
                    arrived = batch if batch.arrived else replace(batch, arrived=now)
                    admitted[key] = (waiting, LoggedArrival(waiting.receiver, now, arrived), key)
        return list(admitted.values())

    @staticmethod
    def _obstacle(waiting: _Waiting, full: Sequence[Outlet]) -> Outlet | Driver | None:
        theirs = [outlet for driver in waiting.drivers for outlet in driver.outlets if outlet in full]
        return theirs[0] if theirs else obstacle(waiting.drivers, waiting.batch)

    async def _write(self, arrivals: Sequence[LoggedArrival], group: Sequence[_Waiting]) -> bool:
        """Write arrivals; return whether there were any and they are on disk."""
        if not arrivals:
            return False
        self._owed.note(self._journal, self._clock.now())
        reason = self._not_ready()
        if reason is None:
            self._writing = True
            try:
                await self._journal.commit([arrival.entry() for arrival in arrivals])
            except StorageError as error:
                reason = error.reason
            finally:
                self._writing = False
        if reason is None:
            return True
        self._failed()
        for waiting in group:
            _fail(waiting, Refused(f"it can't be stored: {reason}"))
        return False

    async def _hand_over(self, waiting: _Waiting, arrival: LoggedArrival) -> None:
        """Hand over what is on disk: there is no way back. What has no room waits as it does in a replay."""
        lost = 0
        for driver in waiting.drivers:
            while driver.chain.blocked:
                await driver.room()
                due = driver.chain.deadline()
                assert due is not None, "a processor without room must have a deadline"
                if due <= self._clock.now() and (held := await driver.advance(max(due, driver.reached))) is not None:
                    await held.room()
            lost += driver.add(arrival.batch, max(arrival.now, driver.reached))
        at_once = passing(waiting.drivers)
        for driver in waiting.drivers:
            driver.carry(() if driver in at_once else None)
        if lost:
            _fail(waiting, Lost(lost))
        else:
            _answer(waiting, None)


def _answer(waiting: _Waiting, answer: Outlet | Driver | None) -> None:
    if not waiting.answer.done():  # whoever asked may have given up
        waiting.answer.set_result(answer)


def _fail(waiting: _Waiting, error: Refused | Lost) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
        waiting.answer.exception()  # looked at: whoever asked may be cancelled before it looks


def _follow(waiting: _Waiting, first: _Waiting) -> None:
    """Have a request answered as the same one before it."""

    def follow(answer: "asyncio.Future[Outlet | Driver | None]") -> None:
        if answer.cancelled():
            _fail(waiting, Refused("the same request is being taken"))
        elif (error := answer.exception()) is not None:
            assert isinstance(error, Refused | Lost)
            _fail(waiting, error)
        else:
            _answer(waiting, answer.result())

    first.answer.add_done_callback(follow)
