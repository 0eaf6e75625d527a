"""What a queue holds: in line and under way, in memory and on disk, and how much of its capacity that takes."""

from collections import deque
from collections.abc import Iterator

from podtrail.component import Ledger
from podtrail.pipeline.sending.pending import Offered, PendingBatches
from podtrail.pipeline.sending.plan import SendingPlan

_IN_MEMORY = 16 << 20
"""Bytes that wait in memory, of a queue whose batches are on disk as well."""


class Backlog:
    """Batches in the order in which they came; small ones of one pipeline are put together."""

    def __init__(self, plan: SendingPlan, *, joins: bool) -> None:
        """Hold as much as planned; `joins`: whether batches may be put together."""
        self.line: deque[PendingBatches] = deque()
        self.under_way: list[PendingBatches] = []
        """What has left the line, in its order; at the end, what is kept of it."""
        self.used = 0
        """In the sizer's unit."""
        self.held = 0
        """Spans."""
        self.full = False
        """Whether it has turned something away since something last left it."""
        self._plan = plan
        self._joins = joins
        self.in_memory = 0
        """Bytes in line, what is on disk alone left out."""

    def __iter__(self) -> Iterator[PendingBatches]:
        yield from self.under_way
        yield from self.line

    @property
    def has_room_for_anything(self) -> bool:
        """Whether whatever comes has room."""
        return not self.used or (self._plan.sizer == "requests" and self.used < self._plan.capacity)

    def fits(self, ledger: Ledger, spans: int, size: int) -> bool:
        """Say whether a batch has room. An empty queue has for anything, or a large batch would wait for ever."""
        cost = self._cost(self._joined_by(ledger, spans, size), spans, size)
        fits = self.used == 0 or self.used + cost <= self._plan.capacity
        self.full = self.full or not fits
        return fits

    def add(self, offered: Offered, ledger: Ledger, decisions: int, size: int, ripe_at: float) -> None:
        """Put a batch at the end of the line; `ripe_at`: when it leaves if nothing of the same pipeline is there."""
        last = self._joined_by(ledger, offered.left, size)
        cost = self._cost(last, offered.left, size)
        if last is None:
            self._spare_memory()
            last = PendingBatches(ledger, 0, 0, 0, 0, ripe_at)
            self.line.append(last)
        last.batches.append(offered)
        last.cost += cost
        last.spans += offered.left
        last.decisions += decisions
        last.size += size
        self.in_memory += size
        self.used += cost
        self.held += offered.left

    def restore(self, pending: PendingBatches) -> None:
        """Put what was on disk at the start at the end of the line."""
        pending.cost = self._cost(None, pending.spans, pending.size)
        self.line.append(pending)
        self.used += pending.cost
        self.held += pending.spans

    def next(self) -> PendingBatches:
        """Take the first out of the line."""
        pending = self.line.popleft()
        if pending.packed:
            pending.unpack()
        else:
            self.in_memory -= pending.size
        self.under_way.append(pending)
        return pending

    def finish(self, pending: PendingBatches) -> None:
        """Let go of what has come to its end."""
        self.under_way.remove(pending)
        self.used -= pending.cost
        self.full = False

    def forget_ended(self) -> None:
        """Let go of everything of which nothing is kept, at the end."""
        self.used -= sum([pending.cost for pending in self if pending.is_empty])
        self.under_way = [pending for pending in self.under_way if not pending.is_empty]
        self.line = deque([pending for pending in self.line if not pending.is_empty])

    def _joined_by(self, ledger: Ledger, spans: int, size: int) -> PendingBatches | None:
        """Return what a batch would leave together with, if it is here already."""
        last = self.line[-1] if self._joins and self.line else None
        return last if last is not None and not last.packed and last.takes(ledger, spans, size) else None

    def _cost(self, joined: PendingBatches | None, spans: int, size: int) -> int:
        return {"requests": 1 if joined is None else 0, "items": spans, "bytes": size}[self._plan.sizer]

    def _spare_memory(self) -> None:
        """Leave the last in line to the disk when enough is in memory: what leaves first stays there."""
        if self.in_memory > _IN_MEMORY and not self.line[-1].packed and self.line[-1].pack():
            self.in_memory -= self.line[-1].size
