"""Recovery: the chains as they were, from the latest checkpoint and what arrived since, in virtual time."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podtrail.component import StartError
from podtrail.config import ConfigError
from podtrail.durable.generation import Generation
from podtrail.durable.owed import Suppressed, Way
from podtrail.durable.recent import RecentRequests, request_key
from podtrail.durable.records import ARRIVAL, DONE, LoggedArrival, LoggedDeliveries
from podtrail.durable.state import PipelineStates
from podtrail.otlp import Batch, MalformedRequest
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.host import left_over, matching
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.pipeline.storing import MakeChain
from podtrail.storage import Journal

_A_TURN: Final = 64
"""Entries that are read before somebody else gets a turn."""
_UNREADABLE: Final = (ValueError, CheckpointError, ConfigError, StartError, MalformedRequest)


@dataclass(slots=True)
class RecoveredPipelines:
    """What a store held."""

    spans: int = 0
    """Replayed, or undecided in the checkpoint."""
    kept_back: int = 0
    """Batches that a predecessor had delivered."""
    unreadable: int = 0
    """Entries of the log and checkpoints that could not be used."""
    abandoned: int = 0
    """Spans for exporters, or from receivers, that are no longer configured."""
    since: int | None = None
    """When the oldest of it arrived, Unix nanoseconds."""
    segments: list[tuple[int, int]] = field(default_factory=list)
    """Segments of the log, and the time at which each begins."""
    generation: Generation | None = None
    """The configuration of the checkpoint, None where there is none that can be used."""
    decided_early: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Spans that no processor of the present configuration took over, by pipeline and processor."""
    forgets: bool = False
    """Whether it has neither a checkpoint nor the log from its beginning: what was remembered is lost."""


@dataclass(slots=True)
class _Replayed:
    """A pipeline of the store as it was configured."""

    driver: Driver
    chain: ProcessorChain
    receivers: Collection[str]
    exporters: Collection[str]
    """Who got what left it; exporters that came later get only what leaves from now on."""


class PipelineRecovery:
    """Reads a journal once and brings pipelines to where they were."""

    def __init__(
        self,
        journal: Journal,
        settings: Settings,
        generation: Generation,
        drivers: Mapping[str, Driver],
        *,
        make: MakeChain,
        checkpointers: dict[str, Checkpointer],
        retire: Callable[[PipelineSettings], Driver],
        recent: RecentRequests,
        clock: PipelineClock,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        """Recover from `journal`.

        Args:
            journal: what was written.
            settings: as they are now.
            generation: the same, of the store's pipelines.
            drivers: of these pipelines; their chains are empty.
            make: makes chains of the store's pipelines.
            checkpointers: of the chains that the pipelines have in the end.
            retire: makes the driver of a pipeline that is no longer configured.
            recent: learns the requests that came lately.
            clock: goes on from the latest time that the log tells.
            log: told what can't be used.
        """
        self._journal = journal
        self._settings = settings
        self._generation = generation
        self._drivers = drivers
        self._make = make
        self._checkpointers = checkpointers
        self._retire = retire
        self._recent = recent
        self._clock = clock
        self._log = log
        self._suppressed = Suppressed()
        self._elsewhere: dict[Way, Driver] = {}
        self._recovered = RecoveredPipelines()

    async def run(self) -> RecoveredPipelines:
        """Bring the pipelines to where the log ends; what no exporter is done with is in the queues afterwards."""
        found = self._checkpoint()
        start, state, replayed = found or (0, None, self._as_configured())
        self._recovered.generation = state.generation if state is not None else None
        self._recovered.forgets = state is None and not self._journal.is_whole
        await self._learn_deliveries(start)
        if state is not None:
            self._restore_owed(state, self._owing(state, replayed))
        await self._replay(start, replayed)
        await self._catch_up(replayed)
        if state is not None and state.generation != self._generation:
            self._hand_to_successors(state.generation.settings(), replayed)
        self._recovered.kept_back = self._suppressed.batches
        return self._recovered

    def _as_configured(self) -> Mapping[str, _Replayed]:
        return {
            id: _Replayed(driver, driver.chain, part["receivers"], part["exporters"])
            for id, part in self._generation.pipelines.items()
            for driver in (self._drivers[id],)
        }

    def _checkpoint(self) -> tuple[int, PipelineStates, Mapping[str, _Replayed]] | None:
        """Return the newest checkpoint that can be used: the segment it goes on with, and its chains."""
        for segment, data in self._journal.saved():
            try:
                state = PipelineStates.read(data)
                return segment, state, self._restore(state)
            except _UNREADABLE as error:
                self._recovered.unreadable += 1
                self._log.warning(
                    "a checkpoint can't be used, what the log still has is replayed without it "
                    "(memories such as numbers of attempts may be lost): %s",
                    error,
                )
        return None

    def _restore(self, state: PipelineStates) -> Mapping[str, _Replayed]:
        settings = state.generation.settings()
        replayed: dict[str, _Replayed] = {}
        checkpointers: dict[str, Checkpointer] = {}
        for pipeline in settings.pipelines:
            driver = self._drivers.get(pipeline.id) or self._retire(pipeline)
            chain = self._make(pipeline, settings, driver.chain.ledger)
            checkpointer = checkpointers[pipeline.id] = Checkpointer(chain)
            for problem in checkpointer.restore(state.chain(pipeline.id)):
                self._recovered.unreadable += 1
                self._log.warning(
                    "a part of a checkpoint can't be used, what was remembered there is lost: pipeline %s, %s",
                    *(pipeline.id, problem),
                )
            replayed[pipeline.id] = _Replayed(driver, chain, pipeline.receivers, pipeline.exporters)
        self._recent.unpack(state.recent)
        self._checkpointers.update(checkpointers)
        for id, past in replayed.items():
            past.driver.chain = past.chain
            past.driver.reached = state.reached[id]
            past.chain.ledger.received += past.chain.held()
            self._recovered.spans += past.chain.held()
            self._came(past.chain.held_since())
        return replayed

    async def _learn_deliveries(self, start: int) -> None:
        for at, (position, entry) in enumerate(self._journal.entries()):
            if not at % _A_TURN:
                await asyncio.sleep(0)
            if entry.kind != DONE or position.segment < start:
                continue
            try:
                deliveries = LoggedDeliveries.read(entry)
            except ValueError as error:
                self._unreadable(error)
            else:
                self._suppressed.learn(deliveries)
                self._clock.not_before(deliveries.now)

    def _owing(self, state: PipelineStates, replayed: Mapping[str, _Replayed]) -> Mapping[str, _Replayed]:
        """Return the pipelines to which something is owed, those that are gone for longer included."""
        owing = dict(replayed)
        for id, _ in (way for way, _ in state.owed):
            if id not in owing:
                exporters = tuple(dict.fromkeys(exporter for (of, exporter), _ in state.owed if of == id))
                driver = self._drivers.get(id) or self._retire(PipelineSettings(id, (), (), exporters))
                owing[id] = _Replayed(driver, driver.chain, (), exporters)
        return owing

    def _restore_owed(self, state: PipelineStates, replayed: Mapping[str, _Replayed]) -> None:
        """Put what exporters owed into their queues again; every exporter of a pipeline counts the same spans."""
        spans: dict[str, dict[str, int]] = {id: {} for id in replayed}
        for (id, exporter), batch in state.owed:
            pipeline = replayed[id]
            outlet = next((outlet for outlet in pipeline.driver.outlets if outlet.exporter == exporter), None)
            owed = spans[id]
            self._came(batch.arrived)
            if outlet is None:
                self._deliver_elsewhere(id, exporter, batch)
                continue
            owed[exporter] = owed.get(exporter, 0) + batch.span_count
            if self._suppressed.keeps_back(id, exporter, batch):
                outlet.ledger.delivered += batch.span_count
            else:
                outlet.offer(batch, at_any_rate=True)
        for id, owed in spans.items():
            most = max(owed.values(), default=0)
            replayed[id].chain.ledger.received += most
            self._recovered.spans += most
            for outlet in replayed[id].driver.outlets:
                if outlet.exporter in replayed[id].exporters:
                    outlet.ledger.delivered += most - owed.get(outlet.exporter, 0)
                else:
                    outlet.missed += most

    def _came(self, since: int | None) -> None:
        if since is not None and (self._recovered.since is None or since < self._recovered.since):
            self._recovered.since = since

    async def _catch_up(self, replayed: Mapping[str, _Replayed]) -> None:
        """Do what has fallen due since: some of it may have left, and been delivered, before the end came."""
        for pipeline in replayed.values():
            self._clock.not_before(pipeline.driver.reached)
        for pipeline in replayed.values():
            pipeline.driver.reached = now = max(self._clock.now(), pipeline.driver.reached)
            while pipeline.chain.advance(now, SLICE_SPANS):
                self._carry(pipeline)
                await asyncio.sleep(0)
            self._carry(pipeline)
        self._recent.go_on(self._clock.now())

    async def _replay(self, start: int, replayed: Mapping[str, _Replayed]) -> None:
        segments = self._recovered.segments
        for position, entry in self._journal.entries():
            if entry.kind != ARRIVAL:
                continue
            try:
                arrival = LoggedArrival.read(entry)
            except (ValueError, MalformedRequest) as error:
                self._unreadable(error)
                continue
            if not segments or segments[-1][0] != position.segment:
                segments.append((position.segment, arrival.now))
            if position.segment < start:
                continue
            self._came(arrival.batch.arrived)
            key = request_key(arrival.receiver, arrival.batch)
            if self._recent.knows(key, arrival.now):
                continue  # it was refused when the disk failed, and yet is there, and came again
            self._recent.learn(key, arrival.now)
            taking = [pipeline for pipeline in replayed.values() if arrival.receiver in pipeline.receivers]
            if taking:
                self._recovered.spans += arrival.batch.span_count
            else:
                self._recovered.abandoned += arrival.batch.span_count
            for pipeline in taking:
                self._add(pipeline, arrival)
            await asyncio.sleep(0)

    def _add(self, pipeline: _Replayed, arrival: LoggedArrival) -> None:
        driver, chain = pipeline.driver, pipeline.chain
        self._advance(pipeline, max(arrival.now, driver.reached))
        while chain.blocked:
            due = chain.deadline()
            assert due is not None, "a processor without room must have a deadline"
            self._advance(pipeline, max(due, driver.reached))
        chain.add(arrival.batch, driver.reached)
        self._carry(pipeline)

    def _advance(self, pipeline: _Replayed, now: int) -> None:
        pipeline.driver.reached = now
        while pipeline.chain.advance(now, SLICE_SPANS):
            self._carry(pipeline)
        self._carry(pipeline)

    def _carry(self, pipeline: _Replayed) -> None:
        driver, outbox = pipeline.driver, pipeline.chain.outbox
        while outbox:
            batch = outbox.popleft()
            driver.show(batch)
            left = {outlet.exporter for outlet in driver.outlets}
            for exporter in pipeline.exporters:
                if exporter not in left:
                    self._deliver_elsewhere(driver.id, exporter, batch)
            for outlet in driver.outlets:
                if outlet.exporter not in pipeline.exporters:
                    outlet.missed += batch.span_count
                    continue
                for piece in outlet.wanted(batch):
                    if self._suppressed.keeps_back(driver.id, outlet.exporter, piece):
                        outlet.ledger.delivered += piece.span_count
                    else:
                        outlet.offer(piece, at_any_rate=True)

    def _deliver_elsewhere(self, pipeline: str, exporter: str, batch: Batch) -> None:
        """Deliver what left a pipeline to an exporter that it no longer has, if that is still there for another."""
        way = (pipeline, exporter)
        driver = self._elsewhere.get(way)
        if driver is None:
            driver = self._elsewhere[way] = self._retire(PipelineSettings(pipeline, (), (), (exporter,)))
        if not driver.outlets:
            self._recovered.abandoned += batch.span_count
            return
        (outlet,) = driver.outlets
        driver.chain.ledger.received += batch.span_count
        for piece in outlet.wanted(batch):
            if self._suppressed.keeps_back(pipeline, exporter, piece):
                outlet.ledger.delivered += piece.span_count
            else:
                outlet.offer(piece, at_any_rate=True)

    def _hand_to_successors(self, before: Settings, replayed: Mapping[str, _Replayed]) -> None:
        """Have the processors as they are configured now take over, as on a reload; let go of what has none."""
        for id, pipeline in replayed.items():
            driver = pipeline.driver
            theirs = next(p.processors for p in before.pipelines if p.id == id)
            ours = self._successor_of(id, before)
            if ours is None:
                self._recovered.decided_early[id] = left_over(theirs, pipeline.chain)
                pipeline.chain.drain(driver.reached)
                self._carry(pipeline)
                continue
            pairs = matching(ours.processors, theirs, self._settings, before)
            self._recovered.decided_early[id] = left_over(theirs, pipeline.chain, {at for _, at in pairs})
            if ours.id != id:
                self._move(pipeline, ours, pairs)
                continue
            driver.chain = self._make(ours, self._settings, pipeline.chain.ledger)
            self._checkpointers[id] = Checkpointer(driver.chain)
            driver.chain.take_over(pipeline.chain, pairs, driver.reached)
            pipeline.chain.drain(driver.reached)
            self._carry(pipeline)
            self._carry(_Replayed(driver, driver.chain, pipeline.receivers, pipeline.exporters))

    def _successor_of(self, id: str, before: Settings) -> PipelineSettings | None:
        """Return the pipeline that a pipeline of the store goes on in: of its name, or the one that was renamed."""
        ours = [pipeline for pipeline in self._settings.pipelines if pipeline.id in self._drivers]
        same = next((pipeline for pipeline in ours if pipeline.id == id), None)
        theirs = {pipeline.id for pipeline in before.pipelines}
        new = [pipeline for pipeline in ours if pipeline.id not in theirs]
        gone = theirs - {pipeline.id for pipeline in ours}
        return same or (new[0] if len(new) == len(gone) == 1 else None)

    def _move(self, pipeline: _Replayed, ours: PipelineSettings, pairs: Sequence[tuple[int, int]]) -> None:
        """Have a renamed pipeline take over; what it does not take leaves by the old name."""
        driver, old = self._drivers[ours.id], pipeline.driver
        driver.reached = max(driver.reached, old.reached)
        driver.chain = self._make(ours, self._settings, driver.chain.ledger)
        self._checkpointers[ours.id] = Checkpointer(driver.chain)
        self._checkpointers.pop(old.id, None)
        driver.chain.take_over(pipeline.chain, pairs, driver.reached)
        moved = driver.chain.held()
        driver.chain.ledger.received += moved
        pipeline.chain.ledger.received -= moved
        pipeline.chain.drain(old.reached)
        self._carry(pipeline)
        self._carry(_Replayed(driver, driver.chain, ours.receivers, ours.exporters))

    def _unreadable(self, error: Exception) -> None:
        self._recovered.unreadable += 1
        self._log.warning("an entry of the log can't be used: %s", error)
