"""The processors of one pipeline in their order, told the time: the one place that drives them, live and in replay.

Before a batch goes in at `now`, everything that was due by then happens first, each at its own time: in order of
deadlines, among equal ones in the order of the pipeline. So the same arrivals give the same decisions, whether a
socket or a recording brings them.
"""

from collections import deque
from collections.abc import Sequence

from podtrail.component import AdmitsBatches, AdmitsRequests, Ledger, PassesOn, Processor
from podtrail.otlp import Batch

SLICE_SPANS = 4096
"""Spans decided before somebody else gets a turn: a few milliseconds."""
PROCESSOR_ERROR = "processor_error"
"""The reason under which spans are dropped that a processor's failure has cost."""


class ProcessorChain:
    """Drives processors. What comes out at the end gathers in `outbox`, for the caller to take."""

    def __init__(self, processors: Sequence[Processor], ledger: Ledger, tick: int = 1, ids: Sequence[str] = ()) -> None:
        """Drive processors.

        Args:
            processors: in their order.
            ledger: what came and went is entered there.
            tick: what falls due is done at the next multiple of so many nanoseconds. A longer one has more done at a
                time, which costs less, a little later.
            ids: what the processors are called in the configuration.
        """
        self.processors = tuple(processors)
        self.ids = tuple(ids) or tuple(map(str, range(len(processors))))
        self.ledger = ledger
        self.tick = tick
        self.outbox: deque[Batch] = deque()
        self.serving: int | None = None
        """The deadline that is being served."""
        self.passes_on = all(isinstance(processor, PassesOn) and processor.passes_on for processor in processors)
        """Whether nothing is held: what is added leaves at once or never."""
        self._admit_batches = [processor for processor in processors if isinstance(processor, AdmitsBatches)]
        self._admit_requests = [processor for processor in processors if isinstance(processor, AdmitsRequests)]
        self.waiting: list[deque[Batch]] = [deque() for _ in processors]
        """Per processor: what it had no room for, and what came for it behind that."""

    def admit(self, batch: Batch, now: int) -> None:
        """Ask every processor that may refuse whether it takes a batch.

        Raises:
            Refused: one of them does not.
        """
        for processor in self._admit_batches:
            processor.admit(batch, now)

    def ask(self, now: int) -> None:
        """Ask every processor that may refuse whether it takes anything.

        Raises:
            Refused: one of them does not.
        """
        for processor in self._admit_requests:
            processor.ask(now)

    def add(self, batch: Batch, now: int) -> int:
        """Take a batch; return how many spans that has cost because a processor failed.

        What is due by `now` must have been done (`advance`), and nothing be `blocked`.
        """
        self.ledger.received += batch.span_count
        before = self.ledger.dropped[PROCESSOR_ERROR]
        self._feed(0, batch, now)
        return self.ledger.dropped[PROCESSOR_ERROR] - before

    def advance(self, now: int, limit: int) -> bool:
        """Do what is due by `now`, about `limit` spans' worth of it; return whether there is more to do."""
        due = self._due()
        if due is None or (tick := self._tick_of(due)) > now:
            return False
        for at, processor in enumerate(self.processors):
            if processor.deadline() == due:
                self.serving = tick
                self._expire(at, processor, due, limit)
                self.serving = None
                break
        next_due = self.deadline()
        return next_due is not None and next_due <= now

    def _expire(self, at: int, processor: Processor, due: int, limit: int) -> None:
        held, tick = processor.held(), self._tick_of(due)
        out = processor.expire(tick, limit)
        for batch in out:
            self._feed(at + 1, batch, tick)
        if self.waiting[at]:
            self._retry(at, tick)
        elif not out and processor.deadline() == due and processor.held() == held:
            raise RuntimeError(f"{type(processor).__name__} says it has work due at {due} and does none")

    def _retry(self, at: int, now: int) -> None:
        waiting = self.waiting[at]
        offered = waiting.popleft()
        taken = self.processors[at].add(offered, now)
        for batch in taken.out:
            self._feed(at + 1, batch, now)
        if taken.rest is not None:
            waiting.appendleft(taken.rest)
        elif waiting:
            self._retry(at, now)

    def _feed(self, at: int, batch: Batch, now: int) -> None:
        if at == len(self.processors):
            self.outbox.append(batch)
            return
        if self.waiting[at]:
            self.waiting[at].append(batch)
            return
        taken = self.processors[at].add(batch, now)
        for out in taken.out:
            self._feed(at + 1, out, now)
        if taken.rest is not None:
            self.waiting[at].append(taken.rest)

    def deadline(self) -> int | None:
        """Return when there is next something to do."""
        due = self._due()
        return due if due is None else self._tick_of(due)

    def _due(self) -> int | None:
        return min([due for processor in self.processors if (due := processor.deadline()) is not None], default=None)

    def _tick_of(self, due: int) -> int:
        return -(-due // self.tick) * self.tick

    @property
    def blocked(self) -> bool:
        """Whether a processor has no room: no batch may be added until its deadline has been served."""
        return any(self.waiting)

    def held(self) -> int:
        """Return the number of spans inside, `outbox` included."""
        waiting = sum(batch.span_count for queue in self.waiting for batch in queue)
        return sum(p.held() for p in self.processors) + waiting + sum(batch.span_count for batch in self.outbox)

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span inside, `outbox` included: Unix nanoseconds."""
        inside = [since for processor in self.processors if (since := processor.held_since()) is not None]
        between = [batch.arrived for queue in (*self.waiting, self.outbox) for batch in queue]
        return min([*inside, *between], default=None)

    def take_over(self, predecessor: "ProcessorChain", matching: Sequence[tuple[int, int]], now: int) -> None:
        """On reload: each of our processors takes what its match in the predecessor holds, by `(ours, theirs)`."""
        for ours, theirs in matching:
            self.processors[ours].take_over(predecessor.processors[theirs], now)
            for batch in predecessor.waiting[theirs]:
                self._feed(ours, batch, now)
            predecessor.waiting[theirs].clear()

    def drain(self, now: int) -> None:
        """Shut down: every processor lets go of everything, first to last."""
        for at, processor in enumerate(self.processors):
            for batch in processor.drain(now):
                self._feed(at + 1, batch, now)
            while self.waiting[at]:
                self._retry_or_drain(at, processor, now)

    def _retry_or_drain(self, at: int, processor: Processor, now: int) -> None:
        self._retry(at, now)
        for batch in processor.drain(now):
            self._feed(at + 1, batch, now)
