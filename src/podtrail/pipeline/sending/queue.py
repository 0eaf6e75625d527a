"""The queue in front of an exporter: what is admitted, who sends it, how it ends."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, cast

from podtrail.component import (
    Exporter,
    Ledger,
    Metrics,
    Permanent,
    Retryable,
    StartError,
    WantsArrivals,
    WantsVerdicts,
)
from podtrail.component.failures import FailureReporter
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch
from podtrail.pipeline.sending.backlog import Backlog
from podtrail.pipeline.sending.batching import LARGEST_REQUEST, request_size, without_first
from podtrail.pipeline.sending.ledger import DeliveryLedger
from podtrail.pipeline.sending.pending import Offered, PendingBatches
from podtrail.pipeline.sending.plan import plan_for
from podtrail.pipeline.sending.queue_journal import QueueJournal
from podtrail.pipeline.sending.recovery import find_batches, in_line
from podtrail.pipeline.sending.retry_sender import RetrySender
from podtrail.pipeline.sending.timeout_sender import TimeoutSender
from podtrail.storage import StorageError, StorageProvider, UnreadableEntry

_VERDICT_SIZE = 512
"""About what a verdict takes in memory, its spans aside."""
_MOST_UNWRITTEN = 64 << 20
"""Bytes that are taken into memory alone while the disk takes nothing."""
_READ_AGAIN = 1.0
"""Seconds until a disk that can't be read is tried again."""


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
        predecessor: "SendingQueue | None" = None,
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
            predecessor: on reload the exporter's queue before, which is left by the time that this one is entered.
        """
        self._plan = plan = plan_for(settings)
        self._id = exporter_id
        self._ledger = DeliveryLedger(exporter_id, metrics, log, plan.remedy)
        self.wants_verdicts = isinstance(exporter, WantsVerdicts) and exporter.wants_verdicts
        """Whether a sampler's decisions are taken; otherwise they are left out."""
        self._wants_arrivals = isinstance(exporter, WantsArrivals) and exporter.wants_arrivals
        self._hurry = asyncio.Event()
        self._retrying = RetrySender(
            TimeoutSender(exporter, plan.timeout, FailureReporter(exporter_id, metrics, log)).send,
            plan.backoff,
            hurry=self._hurry,
            rng=rng or random.Random(),  # noqa: S311 - jitter, not secrets
            on_failure=self._ledger.trying_again,
            once_in_a_hurry=storage is not None,
        )
        self.storage = storage
        self._journal: QueueJournal | None = None
        self._predecessor = predecessor
        self.recovered: Ledger = Ledger() if predecessor is None else predecessor.recovered
        """What became of the spans that were on disk at the start: `received`, and how they ended."""
        self._backlog = Backlog(plan, joins=not self._wants_arrivals)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._released = asyncio.Event()
        self._got_on = 0.0
        """When something was delivered, or began to wait in an empty queue; in the loop's time."""
        self._entered = False
        self._leaves_rest = False
        """Whether, at the end, what is left is left to the disk."""
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
        return self._now() - self._got_on if self._backlog.used else 0.0

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
        """Return the spans that this, or the queue before if this never began, has left on disk."""
        if not self._entered:
            return 0 if self._predecessor is None else self._predecessor.left_on_disk()
        return sum([pending.spans for pending in self._backlog if pending.is_stored])

    def unfinished(self) -> Sequence[tuple[Ledger, Batch]]:
        """Return the batches that were offered with a `done` that was not called yet, in order."""
        return [
            (pending.ledger, offered.batch)
            for pending in self._backlog
            for offered in pending.batches
            if offered.done is not None and offered.batch is not None
        ]

    def has_room(self, batch: Batch, ledger: Ledger) -> bool:
        """Say whether a batch is admitted: none is while a persistent queue can write nothing."""
        if self._closed or not (batch.groups or (batch.verdicts and self.wants_verdicts)):
            return True
        if self.failing is not None:
            return False
        return self._backlog.has_room_for_anything or self._backlog.fits(ledger, *self._weigh(batch))

    async def room(self) -> None:
        """Return when something has left the queue, at once when nothing is in it and it may be written to."""
        if self._backlog.used or self.failing is not None:
            self._ripen()
            self._released.clear()
            await self._released.wait()

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
                is cut off before. What is left then is no loss: it stays among what is `held`, and `unfinished`.
        """
        if batch.verdicts and not self.wants_verdicts:
            batch = replace(batch, verdicts=())
        if not batch.groups and not batch.verdicts:
            if done is not None:
                done()
            return
        if not at_any_rate and not self._closed and not self._may_take(batch, ledger):
            self._ledger.did_not_fit(ledger, batch.span_count, len(batch.verdicts), self.failing)
            self._ripen()
            if done is not None:
                done()
            return
        if not self._backlog.used:
            self._got_on = self._now()
        journal = self._journal
        if journal is None or journal.closed or journal.failing:
            self._take(Offered(batch, batch.span_count, done), ledger)
        else:
            pieces = list(journal.pieces(batch))
            done = _after(len(pieces), done)
            for piece in pieces:
                offered = Offered(piece, piece.span_count, done)
                journal.add(offered, self._weigh(piece)[1])
                self._take(offered, ledger)
        if self._closed and (journal is None or journal.closed):
            self._cut_off()
        self._see_to_it()

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
        self._ripen()

    async def drain(self, seconds: float, *, patient: bool = False) -> None:
        """Deliver what is here, waits between tries cut short; after `seconds` what remains is dropped. Then closed.

        What is on disk is not dropped but stays there, at once when the other side does not take something; so is kept
        what was offered with a `done`.
        When `patient` there are as many seconds again as long as something leaves in them.
        """
        until = self._now() + seconds
        held = self._backlog.held
        self._hurry.set()
        self._see_to_it()
        while self._tasks:
            left = until - self._now()
            if left <= 0:
                if not patient or self._backlog.held >= held:
                    break
                held, left, until = self._backlog.held, seconds, self._now() + seconds
            await asyncio.wait(self._tasks, timeout=left)
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
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
        self._journal = QueueJournal(journal, found)
        for pending in in_line(found, self.recovered, joins=not self._wants_arrivals):
            self._backlog.restore(pending)
        self.recovered.received += self._backlog.held
        self._got_on = self._now()
        self._ledger.recovered(self._backlog.held)
        self._see_to_it()

    def _may_take(self, batch: Batch, ledger: Ledger) -> bool:
        if self.failing is not None:
            return self._backlog.in_memory + batch.size <= _MOST_UNWRITTEN
        return self._backlog.fits(ledger, *self._weigh(batch))

    def _take(self, offered: Offered, ledger: Ledger) -> None:
        assert offered.batch is not None
        _, size = self._weigh(offered.batch)
        ripe_at = self._now() + self._plan.linger
        self._backlog.add(offered, ledger, len(offered.batch.verdicts), size, ripe_at)

    def _weigh(self, batch: Batch) -> tuple[int, int]:
        size = batch.size
        if batch.verdicts and self.wants_verdicts:
            size += sum(_VERDICT_SIZE + sum(len(group.spans) for group in v.groups) for v in batch.verdicts)
        return batch.span_count, size

    def _ripen(self) -> None:
        """Have everything leave that waits for more."""
        for pending in self._backlog.line:
            pending.ripe_at = 0.0
        self._see_to_it()

    def _see_to_it(self) -> None:
        """Start a consumer if something is to leave; if something merely waits, see to it when its time has come."""
        if self._is_ripe():
            if len(self._tasks) < self._plan.consumers:
                self._tasks.add(asyncio.get_running_loop().create_task(self._consume()))
        elif self._backlog.line and self._timer is None and not self._closed and not self._leaves_rest:
            self._timer = asyncio.get_running_loop().call_at(self._backlog.line[0].ripe_at, self._wake)

    def _is_ripe(self) -> bool:
        """Say whether the first in line is to leave: more follow it, its time has come, or the queue is drained."""
        line = self._backlog.line
        if self._closed or self._leaves_rest or not line:
            return False
        return len(line) > 1 or self._hurry.is_set() or line[0].ripe_at <= self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _wake(self) -> None:
        self._timer = None
        self._see_to_it()

    async def _consume(self) -> None:
        try:
            while self._is_ripe():
                await self._send(self._backlog.next())
        finally:
            # At once, not by a callback: whoever waits for room may run first and would count on this task.
            self._tasks.remove(cast("asyncio.Task[None]", asyncio.current_task()))
        self._see_to_it()

    async def _send(self, pending: PendingBatches) -> None:
        """Send what is pending. What is cut off stays among what is under way."""
        if not await self._fetch(pending):
            return
        for piece in pending.whole() if self._wants_arrivals else pending.pieces():
            if not await self._deliver(piece, pending):
                return
        self._backlog.finish(pending)
        self._released.set()
        self._move_straggling()

    async def _fetch(self, pending: PendingBatches) -> bool:
        """Read what is on disk alone; return False when it is left there because podtrail is about to end."""
        journal = self._journal
        for offered in [offered for offered in pending.batches if offered.batch is None]:
            assert journal is not None
            while offered.batch is None:
                try:
                    offered.batch = await journal.fetch(offered)
                except UnreadableEntry as error:
                    pending.batches.remove(offered)
                    self._lose_damaged(offered, pending, error.reason)
                    break
                except StorageError as error:
                    if self._hurry.is_set():
                        self._leaves_rest = True
                        return False
                    self._ledger.unreadable(error.reason)
                    await asyncio.sleep(_READ_AGAIN)
        pending.decisions = sum([len(batch.verdicts) for batch in pending.whole()])
        return True

    def _lose_damaged(self, offered: Offered, pending: PendingBatches, reason: str) -> None:
        assert self._journal is not None
        assert offered.stored is not None
        self._ledger.damaged(pending.ledger, offered.left, reason)
        pending.spans -= offered.left
        self._backlog.held -= offered.left
        self._journal.ended(offered.stored)

    async def _deliver(self, piece: Batch, pending: PendingBatches) -> bool:
        """Send a request until it has come to an end; return False when it is left to the disk instead."""
        spans, decisions = piece.span_count, len(piece.verdicts)
        if len(piece.groups) == 1 and (size := request_size(piece)) > LARGEST_REQUEST:
            self._ledger.too_large(pending.ledger, spans, decisions, size)
        else:
            try:
                rejected = await self._retrying.send(piece)
            except (Retryable, Permanent) as error:
                if isinstance(error, Retryable) and self._hurry.is_set() and pending.is_stored:
                    self._leaves_rest = True
                    return False
                self._ledger.gave_up(pending.ledger, spans, decisions, error)
                if isinstance(error, Permanent):
                    self._got_on = self._now()
            else:
                self._ledger.delivered(pending.ledger, spans, rejected)
                self._got_on = self._now()
        self._end(pending, spans, decisions)
        return True

    def _end(self, pending: PendingBatches, spans: int, decisions: int) -> None:
        self._backlog.held -= spans
        for offered in pending.ended(spans, decisions):
            if offered.stored is not None and self._journal is not None:
                if offered.left:
                    self._journal.left(offered.stored, offered.left)
                else:
                    self._journal.ended(offered.stored)
            if not offered.left:
                offered.finish()

    def _move_straggling(self) -> None:
        """Have what is tried again and again keep no disk space that others have left."""
        segment = None if self._journal is None else self._journal.straggling()
        if self._journal is None or segment is None:
            return
        under_way = [offered for pending in self._backlog.under_way for offered in pending.batches]
        straggling = [
            (offered, self._weigh(offered.batch)[1])
            for offered in under_way
            if offered.batch is not None and offered.stored is not None and offered.stored.position.segment == segment
        ]
        if straggling:
            self._journal.move(straggling)

    def _cut_off(self) -> None:
        """Count as lost what nobody keeps."""
        written = self._journal.written if self._journal is not None else 0
        for pending in list(self._backlog):
            spans, decisions = pending.cut_off(written)
            if spans or decisions:
                self._ledger.shut_down(pending.ledger, spans, decisions)
            self._backlog.held -= spans
        self._backlog.forget_ended()
        self._released.set()


def _after(count: int, done: Callable[[], None] | None) -> Callable[[], None] | None:
    """Return what calls `done` when it has been called so often."""
    if done is None or count == 1:
        return done
    left = iter(range(count - 1, -1, -1))

    def once_more() -> None:
        if not next(left):
            done()

    return once_more
