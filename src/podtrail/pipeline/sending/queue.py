"""The queue in front of an exporter: what is admitted, who sends it, how it ends."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from podtrail.component import Exporter, Ledger, Metrics, StartError, WantsArrivals, WantsVerdicts
from podtrail.component.failures import FailureReporter
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch
from podtrail.pipeline.sending.backlog import Backlog
from podtrail.pipeline.sending.batching import weight, without_first
from podtrail.pipeline.sending.consumers import Consumers
from podtrail.pipeline.sending.ledger import DeliveryLedger
from podtrail.pipeline.sending.pending import Offered
from podtrail.pipeline.sending.plan import plan_for
from podtrail.pipeline.sending.queue_journal import QueueJournal
from podtrail.pipeline.sending.recovery import find_batches, in_line
from podtrail.pipeline.sending.retry_sender import RetrySender
from podtrail.pipeline.sending.timeout_sender import TimeoutSender
from podtrail.pipeline.sending.traced_sender import traced
from podtrail.storage import StorageError, StorageProvider

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_MOST_UNWRITTEN = 64 << 20
"""Bytes that are taken into memory alone while the disk takes nothing."""


class SendingQueue:
    """Holds what an exporter has not delivered yet and enters how it ended; one an exporter, fed by its pipelines.

    Small batches of one pipeline leave together: they wait a moment for more, unless it is full, somebody waits for
    room, or the queue is being drained. Consumers are tasks that live while there is work.

    A persistent queue (`sending_queue::storage`) writes what it is offered, and goes on with it after a restart.
    """

    def __init__(
        self,
        exporter: Exporter,
        exporter_id: str,
        settings: DeliverySettings | None,
        metrics: Metrics,
        log: logging.LoggerAdapter[logging.Logger],
        *,
        rng: random.Random | None = None,
        storage: StorageProvider | None = None,
        durable: bool = False,
        predecessor: "SendingQueue | None" = None,
        tracer: "Tracer | None" = None,
    ) -> None:
        """Make the queue of an exporter, which the caller enters and leaves around it.

        Args:
            exporter: may say that it wants verdicts (`WantsVerdicts`) or batches as they arrived (`WantsArrivals`).
            exporter_id: its id in the configuration, the label of its metrics.
            settings: None for an exporter without (a file): nothing is dropped but what is permanently refused.
            metrics: where the `otelcol_exporter_…` instruments live.
            log: the exporter's log.
            rng: draws the jitter between tries.
            storage: where a persistent queue keeps what it is offered; opened on entering.
            durable: whether the pipelines in front keep what is offered until it has come to an end.
            predecessor: on reload the exporter's queue before, which is left by the time that this one is entered.
            tracer: makes podtrail's own spans of requests; None for none.
        """
        self._entered = False
        self._predecessor: SendingQueue | None = predecessor
        while self._predecessor is not None and not self._predecessor._entered:  # it could not be
            self._predecessor = self._predecessor._predecessor
        self._plan = plan = plan_for(settings, stored=durable or storage is not None)
        self._id = exporter_id
        self._ledger = DeliveryLedger(exporter_id, metrics, log, plan.remedy)
        self.wants_verdicts = isinstance(exporter, WantsVerdicts) and exporter.wants_verdicts
        """Whether a sampler's decisions are taken; otherwise they are left out."""
        self.wants_arrivals = isinstance(exporter, WantsArrivals) and exporter.wants_arrivals
        """Whether batches are to leave as they came, neither put together nor cut."""
        hurry = asyncio.Event()
        once = TimeoutSender(exporter, plan.timeout, FailureReporter(exporter_id, metrics, log)).send
        retrying = RetrySender(
            traced(once, tracer, exporter_id),
            plan.backoff,
            hurry=hurry,
            rng=rng or random.Random(),  # noqa: S311 - jitter, not secrets
            on_failure=self._ledger.trying_again,
        )
        self.storage, self.durable = storage, durable
        self._journal: QueueJournal | None = None
        self.recovered: Ledger = Ledger() if predecessor is None else predecessor.recovered
        """What became of the spans that were on disk at the start: `received`, and how they ended."""
        self._backlog = Backlog(plan, joins=not self.wants_arrivals)
        self._consumers = Consumers(
            plan.consumers, self._backlog, retrying, self._ledger, hurry, as_they_came=self.wants_arrivals
        )
        self._closed = False
        labels = ("exporter",)
        metrics.gauge("otelcol_exporter_queue_size", "What the queue holds, in its sizer's unit.", labels).read_from(
            lambda: self._backlog.used, exporter_id
        )
        metrics.gauge("otelcol_exporter_queue_capacity", "What the queue may hold.", labels).read_from(
            lambda: plan.capacity, exporter_id
        )

    async def __aenter__(self) -> Self:
        if self.storage is not None:
            await self._recover(self.storage)
        if self._predecessor is not None:  # what it has left on disk is received anew by who recovers it
            self.recovered.received -= self._predecessor.left_on_disk()
            self._take_over(self._predecessor)
        self._entered, self._predecessor = True, None
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.drain(0)
        if self._journal is not None:
            await self._journal.close()
            self._ledger.stays(self._backlog.held)

    @property
    def patience(self) -> float | None:
        """What becomes of what does not fit: `Plan.patience`."""
        return self._plan.patience

    @property
    def idle(self) -> float:
        """Seconds since it got on: has delivered something, or had nothing to deliver."""
        return _now() - self._consumers.got_on if self._backlog.used else 0.0

    @property
    def full(self) -> bool:
        """Whether it has turned something away since something last left it."""
        return self._backlog.full

    @property
    def persistent(self) -> bool:
        """Whether what it is offered is to be on disk before its sender is told that it was taken."""
        return self.storage is not None

    @property
    def failing(self) -> str | None:
        """Why a persistent queue can write nothing now; None while it can."""
        return self._journal.failing if self._journal is not None else None

    def held(self) -> int:
        """Return the spans that wait or are under way, or are kept: on disk, or by who offered them."""
        return self._backlog.held

    def kept(self) -> int:
        """Return the spans that outlive the process: all that is held, once this is drained."""
        return self._backlog.held if self._closed else 0

    def left_on_disk(self) -> int:
        """Return the spans that this has left on disk."""
        return sum([pending.spans for pending in self._backlog if pending.is_stored])

    def has_room(self, batch: Batch, ledger: Ledger) -> bool:
        """Say whether a batch is admitted.

        While a persistent queue can write nothing it takes what others keep, into memory, and nothing else. To wait
        for its disk would be for ever where a log of arrivals that waits for it has filled that disk.
        """
        if self._closed or not (batch.groups or (batch.verdicts and self.wants_verdicts)):
            return True
        if self.failing is not None and not (self.durable and self._may_take(batch, ledger)):
            return False
        return self._backlog.has_room_for_anything or self._backlog.fits(ledger, batch.span_count, self._weight(batch))

    async def room(self) -> None:
        """Return when something has left the queue, at once when nothing is in it and it may be written to."""
        if self._backlog.used or self.failing is not None:
            self._consumers.ripen()
            self._consumers.released.clear()
            await self._consumers.released.wait()

    def hurry(self) -> None:
        """Have what waits for more to join it leave now."""
        self._consumers.ripen()

    def offer(
        self, batch: Batch, ledger: Ledger, *, at_any_rate: bool = False, done: Callable[[], None] | None = None
    ) -> None:
        """Take a batch over and enter its end in `ledger`.

        What does not fit is lost and counted as `queue_full`, unless it is to be taken `at_any_rate`. A persistent
        queue begins to write it: `flush` returns when it is on disk. While the disk fails it is taken into memory.

        Args:
            batch: to be delivered.
            ledger: the pipeline's share.
            at_any_rate: whether it is taken when it does not fit.
            done: called once when all of the batch has come to an end, whatever end, or is on disk; not when the queue
                is cut off before. What is left then is no loss: it stays among what is `held`.
        """
        if batch.verdicts and not self.wants_verdicts:
            batch = replace(batch, verdicts=())
        if not batch.groups and not batch.verdicts:
            if done is not None:
                done()
            return
        if not at_any_rate and not self._closed and not self._may_take(batch, ledger):
            self._ledger.did_not_fit(ledger, batch.span_count, len(batch.verdicts), self.failing)
            self._consumers.ripen()
            if done is not None:
                done()
            return
        if not self._backlog.used:
            self._consumers.got_on = _now()
        journal = self._journal
        if journal is None or journal.closed or journal.failing:
            self._take(Offered(batch, batch.span_count, done), ledger)
        else:
            pieces = list(journal.pieces(batch))
            done = _after(len(pieces), done)
            for piece in pieces:
                offered = Offered(piece, piece.span_count, done)
                journal.add(offered, weight(piece))
                self._take(offered, ledger)
        if self._closed and (journal is None or journal.closed):
            self._cut_off()
        self._consumers.see_to_it()

    async def flush(self) -> None:
        """Return when all that was offered is on disk, where that is to be.

        Raises:
            StorageError: it can't be.
        """
        if self._journal is not None:
            await self._journal.flush()

    def refuse(self, spans: int) -> None:
        """Count spans that were not taken for want of room: their sender keeps them."""
        self._ledger.refused(spans, self.failing)
        self._consumers.ripen()

    async def drain(self, seconds: float, *, patient: bool = False) -> None:
        """Deliver what is here, waits between tries cut short; after `seconds` what remains is dropped. Then closed.

        What is on disk, or was offered with a `done`, is not dropped but kept, and tried once: that something is not
        taken ends the waiting for all that is kept.
        When `patient` there are as many seconds again as long as something leaves in them, and as many tries.
        """
        await self._consumers.drain(seconds, patient=patient)
        self._closed = True
        if self._journal is not None:
            await self._journal.settle()
        self._cut_off()
        self._ledger.close()

    def _take_over(self, predecessor: "SendingQueue") -> None:
        """Go on with what somebody else keeps and `predecessor` had no time to deliver, in order."""
        for pending in predecessor._backlog:
            for offered in pending.batches:
                if offered.batch is not None and offered.stored is None and offered.done is not None:
                    rest = without_first(offered.batch, offered.batch.span_count - offered.left)
                    self.offer(rest, pending.ledger, at_any_rate=True, done=offered.done)

    async def _recover(self, storage: StorageProvider) -> None:
        """Take up what is on disk.

        Raises:
            StartError: the journal can't be opened.
        """
        try:
            journal = await storage.open("exporter_" + self._id.replace("/", "_"))
        except StorageError as error:
            raise StartError(f"sending_queue::storage: {error.reason}") from error
        found = await find_batches(journal)
        self._journal = self._consumers.journal = QueueJournal(journal, found)
        for pending in in_line(found, self.recovered, joins=not self.wants_arrivals):
            self._backlog.restore(pending)
        self.recovered.received += self._backlog.held
        self._consumers.got_on = _now()
        self._ledger.recovered(self._backlog.held)
        self._consumers.see_to_it()

    def _may_take(self, batch: Batch, ledger: Ledger) -> bool:
        if self.failing is not None:
            return self._backlog.in_memory + batch.size <= _MOST_UNWRITTEN
        return self._backlog.fits(ledger, batch.span_count, self._weight(batch))

    def _take(self, offered: Offered, ledger: Ledger) -> None:
        assert offered.batch is not None
        ripe_at = _now() + self._plan.linger
        self._backlog.add(offered, ledger, len(offered.batch.verdicts), weight(offered.batch), ripe_at)

    def _weight(self, batch: Batch) -> int:
        return weight(batch) if self.wants_verdicts else batch.size

    def _cut_off(self) -> None:
        """Count as lost what nobody keeps."""
        written = self._journal.written if self._journal is not None else 0
        for pending in list(self._backlog):
            spans, decisions = pending.cut_off(written)
            if spans or decisions:
                self._ledger.shut_down(pending.ledger, spans, decisions)
            self._backlog.held -= spans
        self._backlog.forget_ended()
        self._consumers.released.set()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _after(count: int, done: Callable[[], None] | None) -> Callable[[], None] | None:
    """Return what calls `done` when it has been called so often."""
    if done is None or count == 1:
        return done
    left = iter(range(count - 1, -1, -1))

    def once_more() -> None:
        if not next(left):
            done()

    return once_more
