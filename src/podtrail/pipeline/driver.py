"""The asynchronous edge of a pipeline: hands batches to its chain, keeps its timer, carries what leaves to the queues.

All steps of a pipeline happen under one lock, in the order in which they came: one `now` a step. A long expiry is done
in slices, with the event loop served between them.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from podtrail.component import BatchObserver, Ledger, Refused
from podtrail.otlp import Batch
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.sending import PATIENCE, SendingQueue
from podtrail.pipeline.sending.batching import cut

_LOOK_AGAIN = 1.0
_NANOSECONDS = 1_000_000_000


Owe = Callable[[str, Batch], Callable[[], None]]
"""Told of a batch that an exporter is to deliver, returns what is to be called at its end."""


class Outlet:
    """One exporter's queue as a pipeline sees it, with the pipeline's share of its ledger."""

    def __init__(
        self,
        queue: SendingQueue,
        exporter: str,
        *,
        patient: bool = False,
        owe: Owe | None = None,
        of_partitions: bool = False,
    ) -> None:
        """Lead to `queue`.

        Args:
            queue: the exporter's.
            exporter: its id.
            patient: all sources of the pipeline are in no hurry, and wait rather than lose.
            owe: of a durable pipeline, which loses nothing for want of room: told of each batch that the exporter is
                to deliver, returns what is to be called at its end.
            of_partitions: of a pipeline whose spans can be read again until they are delivered. What leaves each of its
                partitions is put into the queue by who keeps account of that.
        """
        self.queue = queue
        self.exporter = exporter
        self._owe = owe
        self._of_partitions = of_partitions
        self.ledger = Ledger()
        self.missed = 0
        """Spans that left the pipeline before this exporter joined it (on reload)."""
        self.beside: Collection[SendingQueue] = ()
        """The queues of the other exporters that the same receivers feed."""
        self._patience = math.inf if owe else PATIENCE if patient else queue.patience

    @property
    def to_be_written(self) -> bool:
        """Whether what its queue is offered must be on disk before a sender is told so: no log of arrivals has it."""
        return self.queue.persistent and self._owe is None and not self._of_partitions

    def holds_up(self) -> bool:
        """Say whether what it has no room for is to wait. It never is for a stuck exporter while others take."""
        if self._patience is None:
            return False
        return self.queue.idle < self._patience or all(queue.full for queue in self.beside)

    def holds_up_what_left(self) -> bool:
        """Say the same of what has left the processors: where it is to outlive the process it is never lost."""
        return self.to_be_written or self.holds_up()

    async def room(self) -> None:
        """Return when something has left, or when it is time to look again whether it is still to be waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await self.queue.room()

    def offer(self, batch: Batch, *, at_any_rate: bool) -> None:
        """Put what is wanted of a batch into the queue."""
        for piece in self.wanted(batch):
            done = self._owe(self.exporter, piece) if self._owe else None
            self.queue.offer(piece, self.ledger, at_any_rate=at_any_rate, done=done)

    def wanted(self, batch: Batch) -> Iterable[Batch]:
        """Return what the exporter wants of a batch: where it is owed in the pieces in which it is sent.

        What is noted is a piece, so that a crash in the middle of a large batch has no more than that sent again.
        """
        if batch.verdicts and not self.queue.wants_verdicts:
            batch = replace(batch, verdicts=())
        if not batch.groups and not batch.verdicts:
            return ()
        is_owed = self._owe is not None or self._of_partitions
        return cut(batch) if is_owed and not self.queue.wants_arrivals else (batch,)

    def refuse(self, spans: int) -> Refused:
        """Count spans that are not taken because of this exporter; return what to tell their sender."""
        return refusal([self], spans)


def held_up_by(full: Collection[Outlet]) -> Outlet | None:
    """Return one of the exporters without room that is to be waited for."""
    return next((outlet for outlet in full if outlet.holds_up()), None)


def refusal(full: Collection[Outlet], spans: int) -> Refused:
    """Count spans that are not taken because of exporters without room; return what to tell their sender."""
    queues = {outlet.exporter: outlet.queue for outlet in full}
    for queue in queues.values():
        queue.refuse(spans)
    failing = next((queue.failing for queue in queues.values() if queue.failing), None)
    return Refused(f"the sending queue of {', '.join(queues)} {failing or 'is full'}")


class Lag:
    """How late a pipeline is, for its processors, who are told only when their work was due."""

    def __init__(self, clock: PipelineClock) -> None:
        self._clock = clock
        self.chain: ProcessorChain | None = None
        """The pipeline's; made after the processors that ask."""

    def __call__(self) -> int:
        """Return by how many nanoseconds the deadline that is being served has passed; 0 when none is."""
        due = self.chain.serving if self.chain else None
        return 0 if due is None else max(0, self._clock.now() - due)


class Driver:
    """Runs one pipeline's chain live."""

    def __init__(
        self,
        id: str,
        chain: ProcessorChain,
        outlets: Sequence[Outlet],
        observers: Sequence[BatchObserver],
        clock: PipelineClock,
    ) -> None:
        self.id = id
        self.chain = chain
        self.outlets = tuple(outlets)
        self.lock = asyncio.Lock()
        self.partitions: dict[int, ProcessorChain] = {}
        """Where partitions feed the pipeline, each has a chain of its own, and nothing goes through `chain`."""
        self.reached = 0
        """The latest time that the chain was told: nothing comes before it, even if its timer was early."""
        self._observers = tuple(observers)
        self._clock = clock
        self._earlier = asyncio.Event()
        self._armed: int | None = None

    @property
    def chains(self) -> Sequence[ProcessorChain]:
        """All of the pipeline."""
        return (self.chain, *self.partitions.values())

    def held(self) -> int:
        """Return the number of spans inside."""
        return sum(chain.held() for chain in self.chains)

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
                    async with asyncio.timeout(wait):  # wait_for would make a task of it, once a tick, before 3.12
                        await self._earlier.wait()
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
            if full is None:
                for outlet in self.full(batch):
                    if outlet.holds_up_what_left():
                        return outlet
            self.show(batch)
            for outlet in self.outlets:
                outlet.offer(batch, at_any_rate=full is not None and outlet not in full)
            outbox.popleft()
        return None

    def show(self, batch: Batch) -> None:
        """Let the observers see a batch that leaves."""
        for observer in self._observers:
            observer.observe(self.id, batch)


def not_before(drivers: Collection[Driver], time: int) -> int:
    """Return a time, Unix nanoseconds, or the latest that any of these pipelines was told."""
    return max([time, *[driver.reached for driver in drivers]])


def obstacle(drivers: Collection[Driver], batch: Batch) -> Outlet | Driver | None:
    """Return what a batch has to wait for before these pipelines can take it."""
    for driver in drivers:
        if driver.chain.blocked:
            return driver
    return held_up_by([outlet for driver in passing(drivers) for outlet in driver.full(batch)])


def passing(drivers: Collection[Driver]) -> Sequence[Driver]:
    """Return the pipelines that hold nothing: what they are given leaves at once."""
    return [driver for driver in drivers if driver.chain.passes_on]
