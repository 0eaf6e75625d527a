"""The queue in front of an exporter: what is admitted, who sends it, how it ends."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, cast

from podtrail.component import Exporter, Ledger, Metrics, Permanent, Retryable, WantsArrivals, WantsVerdicts
from podtrail.component.failures import FailureReporter
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch
from podtrail.pipeline.sending.batching import LARGEST_REQUEST, Offered, PendingBatches, request_size
from podtrail.pipeline.sending.ledger import DeliveryLedger
from podtrail.pipeline.sending.plan import plan_for
from podtrail.pipeline.sending.retry_sender import RetrySender
from podtrail.pipeline.sending.timeout_sender import TimeoutSender

_VERDICT_SIZE = 512
"""About what a verdict takes in memory, its spans aside."""


class SendingQueue:
    """Holds what an exporter has not delivered yet and enters how it ended; one an exporter, fed by its pipelines.

    Small batches of one pipeline leave together: they wait a moment for more, unless it is full, somebody waits for
    room, or the queue is being drained. Consumers are tasks that live while there is work.
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
    ) -> None:
        """Make the queue of an exporter, which the caller enters and leaves around it.

        Args:
            exporter: may say that it wants verdicts (`WantsVerdicts`) or batches as they arrived (`WantsArrivals`).
            exporter_id: its id in the configuration, the label of its metrics.
            settings: None for an exporter without (a file): nothing is dropped but what is permanently refused.
            metrics: where the `otelcol_exporter_…` instruments live.
            log: the exporter's log.
            rng: draws the jitter between tries.
        """
        self._plan = plan = plan_for(settings)
        self._ledger = DeliveryLedger(exporter_id, metrics, log, plan.remedy)
        self._wants_verdicts = isinstance(exporter, WantsVerdicts) and exporter.wants_verdicts
        self._wants_arrivals = isinstance(exporter, WantsArrivals) and exporter.wants_arrivals
        self._hurry = asyncio.Event()
        self._retrying = RetrySender(
            TimeoutSender(exporter, plan.timeout, FailureReporter(exporter_id, metrics, log)).send,
            plan.backoff,
            hurry=self._hurry,
            rng=rng or random.Random(),  # noqa: S311 - jitter, not secrets
            on_failure=self._ledger.trying_again,
        )
        self._line: deque[PendingBatches] = deque()
        self._under_way: list[PendingBatches] = []
        """What has left the line, in its order; at the end, what is kept of it."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._used = 0
        self._held = 0
        self._released = asyncio.Event()
        self.full = False
        """Whether it has turned something away since something last left it."""
        self._got_on = 0.0
        """When something was delivered, or began to wait in an empty queue; in the loop's time."""
        self._closed = False
        labels = ("exporter",)
        metrics.gauge("otelcol_exporter_queue_size", "What the queue holds, in its sizer's unit.", labels).read_from(
            lambda: self._used, exporter_id
        )
        metrics.gauge("otelcol_exporter_queue_capacity", "What the queue may hold.", labels).read_from(
            lambda: plan.capacity, exporter_id
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.drain(0)

    @property
    def patience(self) -> float | None:
        """What becomes of what does not fit: `Plan.patience`."""
        return self._plan.patience

    @property
    def idle(self) -> float:
        """Seconds since it got on: has delivered something, or had nothing to deliver."""
        return self._now() - self._got_on if self._used else 0.0

    def held(self) -> int:
        """Return the spans that wait or are under way, or are kept by who offered them."""
        return self._held

    def unfinished(self) -> Sequence[tuple[Ledger, Batch]]:
        """Return the batches that were offered with a `done` that was not called yet, in order."""
        return [
            (pending.ledger, offered.batch)
            for pending in (*self._under_way, *self._line)
            for offered in pending.batches
            if offered.done is not None
        ]

    def has_room(self, batch: Batch, ledger: Ledger) -> bool:
        """Say whether a batch is admitted. An empty queue admits anything, or a large batch would wait for ever."""
        if self._closed or not self._used or not (batch.groups or self._wants_verdicts):
            return True
        if self._plan.sizer == "requests" and self._used < self._plan.capacity:
            return True
        spans, size = self._weigh(batch)
        return self._fits(self._cost(self._joined_by(ledger, spans, size), spans, size))

    async def room(self) -> None:
        """Return when something has left the queue, at once when nothing is in it."""
        if self._used:
            self._ripen()
            self._released.clear()
            await self._released.wait()

    def offer(
        self, batch: Batch, ledger: Ledger, *, at_any_rate: bool = False, done: Callable[[], None] | None = None
    ) -> None:
        """Take a batch over and enter its end in `ledger`.

        What does not fit is lost and counted as `queue_full`, unless it is to be taken `at_any_rate`.

        Args:
            batch: to be delivered.
            ledger: the pipeline's share.
            at_any_rate: whether it is taken when it does not fit.
            done: called once when all of the batch has come to an end, whatever end; not when the queue is cut off
                before. What is left then is no loss: it stays among what is `held`, and `unfinished`.
        """
        if batch.verdicts and not self._wants_verdicts:
            batch = replace(batch, verdicts=())
        if not batch.groups and not batch.verdicts:
            if done is not None:
                done()
            return
        spans, size = self._weigh(batch)
        offered = Offered(batch, spans, done)
        if self._closed:
            self._held += spans
            late = PendingBatches(ledger, 0, spans, len(batch.verdicts), size, 0.0, deque([offered]))
            self._under_way.append(late)
            self._finish(late)
            return
        last = self._joined_by(ledger, spans, size)
        cost = self._cost(last, spans, size)
        if not at_any_rate and not self._fits(cost):
            self._ledger.did_not_fit(ledger, spans, len(batch.verdicts))
            self._ripen()
            if done is not None:
                done()
            return
        if not self._used:
            self._got_on = self._now()
        if last is None:
            last = PendingBatches(ledger, 0, 0, 0, 0, ripe_at=self._now() + self._plan.linger)
            self._line.append(last)
        last.batches.append(offered)
        last.cost += cost
        last.spans += spans
        last.decisions += len(batch.verdicts)
        last.size += size
        self._used += cost
        self._held += spans
        self._see_to_it()

    def refuse(self, spans: int) -> None:
        """Count spans that were not taken for want of room: their sender keeps them."""
        self._ledger.refused(spans)
        self._ripen()

    async def drain(self, seconds: float, *, patient: bool = False) -> None:
        """Deliver what is here, waits between tries cut short; after `seconds` what remains is dropped. Then closed.

        What was offered with a `done` is not dropped but kept, as it is.
        When `patient` there are as many seconds again as long as something leaves in them.
        """
        until = self._now() + seconds
        held = self._held
        self._hurry.set()
        self._see_to_it()
        while self._tasks:
            left = until - self._now()
            if left <= 0:
                if not patient or self._held >= held:
                    break
                held, left, until = self._held, seconds, self._now() + seconds
            await asyncio.wait(self._tasks, timeout=left)
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        while self._line:
            self._finish(self._next())
        self._ledger.close()

    def _weigh(self, batch: Batch) -> tuple[int, int]:
        size = batch.size
        if batch.verdicts and self._wants_verdicts:
            size += sum(_VERDICT_SIZE + sum(len(group.spans) for group in v.groups) for v in batch.verdicts)
        return batch.span_count, size

    def _joined_by(self, ledger: Ledger, spans: int, size: int) -> PendingBatches | None:
        """Return what a batch would leave together with, if it is here already."""
        if self._wants_arrivals or not self._line or not self._line[-1].takes(ledger, spans, size):
            return None
        return self._line[-1]

    def _cost(self, joined: PendingBatches | None, spans: int, size: int) -> int:
        return {"requests": 1 if joined is None else 0, "items": spans, "bytes": size}[self._plan.sizer]

    def _fits(self, cost: int) -> bool:
        fits = self._used == 0 or self._used + cost <= self._plan.capacity
        self.full = self.full or not fits
        return fits

    def _ripen(self) -> None:
        """Have everything leave that waits for more."""
        for pending in self._line:
            pending.ripe_at = 0.0
        self._see_to_it()

    def _see_to_it(self) -> None:
        """Start a consumer if something is to leave; if something merely waits, see to it when its time has come."""
        if self._is_ripe():
            if len(self._tasks) < self._plan.consumers:
                self._tasks.add(asyncio.get_running_loop().create_task(self._consume()))
        elif self._line and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._line[0].ripe_at, self._wake)

    def _is_ripe(self) -> bool:
        """Say whether the first in line is to leave: more follow it, its time has come, or the queue is drained."""
        line = self._line
        return len(line) > 1 or (bool(line) and (self._hurry.is_set() or line[0].ripe_at <= self._now()))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _wake(self) -> None:
        self._timer = None
        self._see_to_it()

    async def _consume(self) -> None:
        try:
            while self._is_ripe():
                await self._send(self._next())
        finally:
            # At once, not by a callback: whoever waits for room may run first and would count on this task.
            self._tasks.remove(cast("asyncio.Task[None]", asyncio.current_task()))
        self._see_to_it()

    def _next(self) -> PendingBatches:
        pending = self._line.popleft()
        self._under_way.append(pending)
        return pending

    async def _send(self, pending: PendingBatches) -> None:
        try:
            pieces = [offered.batch for offered in pending.batches] if self._wants_arrivals else pending.pieces()
            for piece in pieces:
                await self._deliver(piece, pending)
        finally:
            self._finish(pending)

    async def _deliver(self, piece: Batch, pending: PendingBatches) -> None:
        spans, decisions = piece.span_count, len(piece.verdicts)
        if len(piece.groups) == 1 and (size := request_size(piece)) > LARGEST_REQUEST:
            self._ledger.too_large(pending.ledger, spans, decisions, size)
        else:
            try:
                rejected = await self._retrying.send(piece)
            except (Retryable, Permanent) as error:
                self._ledger.gave_up(pending.ledger, spans, decisions, error)
                if isinstance(error, Permanent):
                    self._got_on = self._now()
            else:
                self._ledger.delivered(pending.ledger, spans, rejected)
                self._got_on = self._now()
        self._held -= spans
        pending.ended(spans, decisions)

    def _finish(self, pending: PendingBatches) -> None:
        """Let go of pending batches; what of them the ledger does not have yet was cut off by the end."""
        spans, decisions = pending.cut_off()
        if spans or decisions:
            self._ledger.shut_down(pending.ledger, spans, decisions)
        self._held -= spans
        self._used -= pending.cost
        if not pending.batches:
            self._under_way.remove(pending)
        self.full = False
        self._released.set()
