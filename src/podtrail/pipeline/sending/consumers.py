"""Who sends what waits in a queue: tasks that live while there is work."""

import asyncio
from typing import cast

from podtrail.component import Ledger, Permanent, Retryable
from podtrail.otlp import Batch
from podtrail.pipeline.sending.backlog import Backlog
from podtrail.pipeline.sending.batching import LARGEST_REQUEST, request_size, weight
from podtrail.pipeline.sending.ledger import DeliveryLedger
from podtrail.pipeline.sending.pending import Offered, PendingBatches
from podtrail.pipeline.sending.queue_journal import QueueJournal
from podtrail.pipeline.sending.retry_sender import RetrySender
from podtrail.storage import StorageError, UnreadableEntry

_READ_AGAIN = 1.0
"""Seconds until a disk that can't be read is tried again."""


class Consumers:
    """Take what is ripe out of the backlog, read it if it is on disk alone, and send it until it has come to an end."""

    def __init__(
        self,
        most: int,
        backlog: Backlog,
        retrying: RetrySender[Batch],
        ledger: DeliveryLedger,
        hurry: asyncio.Event,
        *,
        as_they_came: bool,
    ) -> None:
        """Make ready to send.

        Args:
            most: how many requests may be under way at once.
            backlog: where it waits.
            retrying: sends a request until it is taken or given up.
            ledger: says how it ended.
            hurry: set when the queue is being drained.
            as_they_came: whether batches are sent each by itself, as they were offered.
        """
        self.journal: QueueJournal | None = None
        """Of a persistent queue."""
        self.got_on = 0.0
        """When something was delivered, or began to wait in an empty queue; in the loop's time."""
        self.released = asyncio.Event()
        """Set when something has left."""
        self._most = most
        self._backlog = backlog
        self._retrying = retrying
        self._ledger = ledger
        self._hurry = hurry
        self._as_they_came = as_they_came
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._patient = False
        """Whether, at the end, there is time for further tries."""
        self._leaves_rest = False
        """Whether, at the end, nothing more is sent: all of it is kept."""
        self._stopped = False

    async def drain(self, seconds: float, *, patient: bool) -> None:
        """Let work go on for so many seconds, as often as something leaves in them when `patient`; then end it."""
        until = self._now() + seconds
        held = self._backlog.held
        self._patient = patient
        self._hurry.set()
        self.see_to_it()
        while self._tasks:
            left = until - self._now()
            if left <= 0:
                if not patient or self._backlog.held >= held:
                    break
                held, left, until = self._backlog.held, seconds, self._now() + seconds
            await asyncio.wait(self._tasks, timeout=left)
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def ripen(self) -> None:
        """Have everything leave that waits for more."""
        for pending in self._backlog.line:
            pending.ripe_at = 0.0
        self.see_to_it()

    def see_to_it(self) -> None:
        """Start a consumer if something is to leave; if something merely waits, see to it when its time has come."""
        if self._is_ripe():
            if len(self._tasks) < self._most:
                self._tasks.add(asyncio.get_running_loop().create_task(self._consume()))
        elif self._backlog.line and self._timer is None and not self._stopped and not self._leaves_rest:
            self._timer = asyncio.get_running_loop().call_at(self._backlog.line[0].ripe_at, self._wake)

    def _is_ripe(self) -> bool:
        """Say whether the first in line is to leave: more follow it, its time has come, or the queue is drained."""
        line = self._backlog.line
        if self._stopped or self._leaves_rest or not line:
            return False
        return len(line) > 1 or self._hurry.is_set() or line[0].ripe_at <= self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _wake(self) -> None:
        self._timer = None
        self.see_to_it()

    async def _consume(self) -> None:
        try:
            while self._is_ripe():
                await self._send(self._backlog.next())
        finally:
            # At once, not by a callback: whoever waits for room may run first and would count on this task.
            self._tasks.remove(cast("asyncio.Task[None]", asyncio.current_task()))
        self.see_to_it()

    async def _send(self, pending: PendingBatches) -> None:
        """Send what is pending. What is cut off stays among what is under way."""
        if not await self._fetch(pending):
            return
        for piece in pending.whole() if self._as_they_came else pending.pieces():
            if not await self._deliver(piece, pending):
                return
        self._backlog.finish(pending)
        self.released.set()
        self._move_straggling()

    async def _fetch(self, pending: PendingBatches) -> bool:
        """Read what is on disk alone; return False when it is left there because podtrail is about to end."""
        journal = self.journal
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
        assert self.journal is not None
        assert offered.stored is not None
        self._ledger.damaged(pending.ledger, offered.left, reason)
        pending.spans -= offered.left
        self._backlog.held -= offered.left
        self.journal.ended(offered.stored)

    async def _deliver(self, piece: Batch, pending: PendingBatches) -> bool:
        """Send a request until it has come to an end; return False when it is left to who keeps it instead."""
        spans, decisions = piece.span_count, len(piece.verdicts)
        if len(piece.groups) == 1 and (size := request_size(piece)) > LARGEST_REQUEST:
            self._ledger.too_large(pending.ledger, spans, decisions, size)
        else:
            try:
                rejected = await self._retrying.send(piece, is_last=lambda: self._may_leave(pending))
            except (Retryable, Permanent) as error:
                if isinstance(error, Retryable) and self._may_leave(pending):
                    self._leaves_rest = all(pending.is_kept for pending in self._backlog)
                    return False
                self._give_up(pending.ledger, spans, decisions, error)
                if isinstance(error, Permanent):
                    self.got_on = self._now()
            else:
                self._ledger.delivered(pending.ledger, spans, rejected)
                self.got_on = self._now()
        self._end(pending, spans, decisions)
        return True

    def _may_leave(self, pending: PendingBatches) -> bool:
        """Say whether, at the end, something that was not taken is left to who keeps it."""
        return self._hurry.is_set() and not self._patient and pending.is_kept

    def _give_up(self, ledger: Ledger, spans: int, decisions: int, error: Retryable | Permanent) -> None:
        """Enter what was given up, and what of it the other side has taken nevertheless."""
        lost = spans if error.rest is None else error.rest.span_count
        if lost < spans:
            self._ledger.delivered(ledger, spans - lost, error.rejected)
        self._ledger.gave_up(ledger, lost, decisions, error)

    def _end(self, pending: PendingBatches, spans: int, decisions: int) -> None:
        self._backlog.held -= spans
        for offered in pending.ended(spans, decisions):
            if offered.stored is not None and self.journal is not None:
                if offered.left:
                    self.journal.left(offered.stored, offered.left)
                else:
                    self.journal.ended(offered.stored)
            if not offered.left:
                offered.finish()

    def _move_straggling(self) -> None:
        """Have what is tried again and again keep no disk space that others have left."""
        segment = None if self.journal is None else self.journal.straggling()
        if self.journal is None or segment is None:
            return
        under_way = [offered for pending in self._backlog.under_way for offered in pending.batches]
        straggling = [
            (offered, weight(offered.batch))
            for offered in under_way
            if offered.batch is not None and offered.stored is not None and offered.stored.position.segment == segment
        ]
        if straggling:
            self.journal.move(straggling)
