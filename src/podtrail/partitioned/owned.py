"""A partition while it is owned: its processors are driven in its time."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from podtrail.component import Commit, Lost, PartitionRecord, Refused
from podtrail.durable.generation import Generation
from podtrail.otlp import Batch
from podtrail.partitioned.checkpointing import PartitionCheckpoints
from podtrail.partitioned.committing import PartitionCommits
from podtrail.partitioned.delivered import PartitionStep
from podtrail.partitioned.note import CheckpointPlace
from podtrail.partitioned.state import PartitionState
from podtrail.partitioned.succession import PendingSuccession, succeed
from podtrail.pipeline.chain import SLICE_SPANS
from podtrail.pipeline.driver import Outlet
from podtrail.pipeline.settings import Settings

_A_TURN: Final = 16
"""Deadlines that are served before somebody else gets a turn."""
_SPANS_A_TURN: Final = 4096
_ASK_AGAIN: Final = 1.0
"""Seconds until it is looked again whether there is room."""


@dataclass(frozen=True, slots=True)
class _Pause:
    """Waits before something is tried again."""

    seconds: float

    async def room(self) -> None:
        """Return when it is over."""
        await asyncio.sleep(self.seconds)


_TURN: Final = _Pause(0.0)
_Obstacle = Outlet | _Pause


class OwnedPartition:
    """What the pipelines keep of a partition (`podtrail.component.Partition`)."""

    def __init__(
        self,
        state: PartitionState,
        committed: Commit | None,
        place: CheckpointPlace | None,
        *,
        keeps_checkpoints: bool,
    ) -> None:
        """Go on with processors as they are.

        Args:
            state: the partition.
            committed: what is committed for it.
            place: where the checkpoint is that its processors were made from; None: they begin with nothing.
            keeps_checkpoints: whether any are written.
        """
        self._state = state
        self._shared = state.shared
        self._leaving = state.leaving
        self._commits = PartitionCommits(state, committed, place, keeps_checkpoints=keeps_checkpoints)
        self._checkpoints = PartitionCheckpoints(state, self._commits, keeps_checkpoints=keeps_checkpoints)
        self._last: Commit | None = None
        """What could be committed when it was dropped."""

    @property
    def position(self) -> int | None:
        """The offset to be read next; None: nothing is known of the partition."""
        return self._state.position

    @property
    def undecided(self) -> int:
        """How many spans are undecided."""
        return self._state.undecided

    @property
    def oldest(self) -> int | None:
        """The time of the oldest record that may still be needed, Unix nanoseconds."""
        return self._state.oldest

    @property
    def time(self) -> int:
        """The time that it has reached, Unix nanoseconds; 0: none."""
        return self._state.told

    @property
    def repeated(self) -> int:
        """How many decisions were made again that an earlier owner had made."""
        return self._leaving.repeated

    @property
    def is_gone(self) -> bool:
        """Whether it was dropped."""
        return self._last is not None

    async def take(self, records: Sequence[PartitionRecord]) -> None:
        """Take records in the order of their offsets, waiting for room; those before `position` are passed over."""
        state, spans = self._state, self._leaving.spans
        for record in records:
            while not self.is_gone and (state.position is None or record.offset >= state.position):
                await self._wait(self._try(record) if self._shared.open.is_set() else _TURN)
            if self._leaving.spans - spans > _SPANS_A_TURN:
                spans = self._leaving.spans
                await asyncio.sleep(0)
        await self._settle()

    async def pass_time(self, now: int) -> None:
        """Let time pass until `now`, Unix nanoseconds, and what is due by then leave, waiting for room."""
        position = self._state.position
        if position is None or self.is_gone:
            return
        self._commits.add_mark(PartitionStep(position, now))
        await self._settle()

    async def _settle(self) -> None:
        """Bring everything away that has left, and let time pass where it passed before."""
        while not self.is_gone:
            obstacle = self._catch_up(self._state.position or 0) if self._shared.open.is_set() else _TURN
            if obstacle is None:
                return
            await self._wait(obstacle)

    async def _wait(self, obstacle: _Obstacle | None) -> None:
        if obstacle is not None:
            await obstacle.room()
        if not self._shared.open.is_set():
            await self._shared.open.wait()

    def _try(self, record: PartitionRecord) -> _Obstacle | None:
        """Take a record, or get on towards it and return what is in the way."""
        state = self._state
        if (obstacle := self._catch_up(record.offset)) is not None:
            return obstacle
        now = max(state.reached + 1, record.time, state.told)
        if (obstacle := self._advance(now)) is not None:
            return obstacle
        blocked = [pipeline.chain for pipeline in state.pipelines if pipeline.chain.blocked]
        if blocked:  # there is room at its deadline: the record waits for it in the partition's time
            dues = [due for chain in blocked if (due := chain.deadline()) is not None]
            return self._advance(max(min(dues, default=now), now)) or _TURN
        batch = record.batch
        if batch is not None and batch.groups:
            batch = Batch(batch.groups, now, batch.verdicts)
            try:
                for pipeline in state.pipelines:
                    pipeline.made.admit(batch, self._shared.clock.now())
            except Refused as refused:  # its time has passed: what was due by then has made what room it could
                self._shared.tell_refused(state.topic, state.number, record.offset, refused)
                return _Pause(min(refused.after or _ASK_AGAIN, _ASK_AGAIN))
            except Lost:  # it is in the ledger and the log
                batch = None
        self._pass(record.offset, now, batch)
        return None

    def _pass(self, offset: int, now: int, batch: Batch | None) -> None:
        state = self._state
        if state.before is not None and offset < state.before.left.position:
            self._shared.instruments.replayed()
        state.position, state.reached, state.told = offset + 1, now, now
        if batch is None or not batch.groups:
            return
        self._commits.took(now, offset)
        state.arrivals.add(now, offset)
        state.read += batch.size
        state.came += batch.span_count
        step = PartitionStep(offset + 1, now)
        for pipeline in state.pipelines:
            pipeline.chain.add(batch, now)
            pipeline.left(step)
        for pipeline in state.pipelines:
            self._leaving.carry(pipeline)

    def _catch_up(self, offset: int) -> _Obstacle | None:
        """Do what comes before a record: time that passed without one, another configuration that takes over."""
        state = self._state
        for pipeline in state.pipelines:
            if (full := self._leaving.carry(pipeline)) is not None:
                return full
        if not state.ahead and state.succession is None:
            return None
        while (mark := state.next_mark(offset)) is not None:
            if (obstacle := self._succeed_before(mark)) is not None:
                return obstacle
            if (obstacle := self._advance(max(mark.time, state.told))) is not None:
                return obstacle
            state.reached = max(state.reached, mark.time)
            state.ahead.popleft()
        return self._succeed_before(PartitionStep(offset + 1, 0))

    def _succeed_before(self, step: PartitionStep) -> _Obstacle | None:
        """Have another configuration take over if it is to before a step."""
        state = self._state
        if state.succession is None or state.succession.end >= step:
            return None
        if (obstacle := self._advance(max(state.succession.end.time, state.told))) is not None:
            return obstacle
        self._succeed(state.succession.settings)
        return None

    def _advance(self, now: int) -> _Obstacle | None:
        """Do all that is due by a time; return what is in the way."""
        state = self._state
        state.told = now
        spans, served = self._leaving.spans, 0
        for pipeline in state.pipelines:
            chain = pipeline.chain
            while (due := chain.deadline()) is not None and due <= now:
                chain.advance(now, SLICE_SPANS)
                pipeline.left(PartitionStep(state.position or 0, due))
                if (full := self._leaving.carry(pipeline)) is not None:
                    return full
                served += 1
                if served == _A_TURN or self._leaving.spans - spans > _SPANS_A_TURN:
                    return _TURN
        return None

    def _succeed(self, before: Settings) -> None:
        """Have the pipelines as they are configured now take over."""
        state = self._state
        new = self._shared.make_fed(state.topic, state.number)
        if state.position is not None:
            self._checkpoints.take_over()
        self._leaving.nothing_is_repeated()
        succeed(state.pipelines, before, new, self._shared, self._leaving, state.step())
        state.pipelines, state.configured, state.succession = new, self._shared.configured, None
        state.reached = max(state.reached, state.told)

    def lead_to_successors(self, before: Settings, generation: Generation) -> None:
        """Go on in the pipelines as they are configured now; before they were as in these settings."""
        state = self._state
        if not state.replays():
            self._succeed(before)
            return
        assert state.before is not None, "it replays what somebody did before"
        state.succession = state.succession or PendingSuccession(before, generation, state.before.end)
        for pipeline in state.pipelines:
            if self._shared.is_fed(pipeline.id):
                pipeline.move_to(self._shared.driver(pipeline.settings))

    def finish(self) -> int:
        """Decide at once what is undecided, for its topic is no more; return how many records were lost with that."""
        return 0 if self.is_gone else self._state.finish()

    def due(self) -> int | None:
        """Return the earliest time, Unix nanoseconds, at which something would be decided without another record."""
        return self._state.due()

    def mark(self, now: int) -> Commit:
        """Return what must be committed before `pass_time(now)`: Unix nanoseconds."""
        self._end_reached()
        return self._commits.with_mark(now)

    def commit(self) -> Commit:
        """Return what may be committed now."""
        return self._last or self._commits.commit()

    def _end_reached(self) -> None:
        """See whether what an owner before has taken is there no more."""
        state = self._state
        if state.before is None or state.succession is not None or state.position is None:
            return
        if state.position < state.before.left.position:
            self._shared.log.warning(
                "%s/%d ends at %d, although %d was committed: records are gone, and what is there now is new",
                *(state.topic, state.number, state.position, state.before.left.position),
            )
            state.before = None
            self._commits.end_at(state.position)
            self._leaving.nothing_is_repeated()

    def checkpoint_due(self) -> bool:
        """Return whether it is time to write a checkpoint."""
        return not self.is_gone and self._checkpoints.is_due()

    def checkpoint(self) -> Sequence[bytes | memoryview] | None:
        """Return the state as it is now, in pieces; None when it can't be taken, which was told and counted."""
        return None if self.is_gone else self._checkpoints.take()

    def checkpointed(self, at: str) -> None:
        """Have commits name the checkpoint taken last: it can be read again at `at`."""
        self._checkpoints.written(at)

    async def delivered(self) -> None:
        """Return when everything that has left the processors is delivered, or was given up."""
        undelivered = self._leaving.undelivered
        while not self.is_gone:
            for pipeline in self._state.pipelines:
                if (full := self._leaving.carry(pipeline)) is not None:
                    await full.room()
                    break
            else:
                ways = undelivered.ways()
                if not ways:
                    return
                undelivered.ended.clear()
                for pipeline in self._state.pipelines:
                    for outlet in pipeline.driver.outlets:
                        outlet.queue.hurry()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ASK_AGAIN):
                        await undelivered.ended.wait()

    def give_up(self, exporters: Collection[str]) -> int:
        """Owe nothing any more to others than these exporters; return how many spans that were."""
        return self._leaving.undelivered.give_up(exporters)

    def drop(self) -> None:
        """Forget everything. What was undecided counts as never received."""
        if self.is_gone:
            return
        self._last = self._commits.commit() if self._state.position is not None else Commit(0, "")
        for pipeline in self._state.pipelines:
            pipeline.close()
        self._state.pipelines = ()
        self._state.ahead.clear()
