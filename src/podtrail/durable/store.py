"""The durable pipelines of one store: opened and recovered, logged, kept in checkpoints, closed."""

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from podtrail.component import Metrics, StartError
from podtrail.durable.generation import Generation
from podtrail.durable.log import ArrivalLog
from podtrail.durable.owed import Owed
from podtrail.durable.pace import CheckpointPace
from podtrail.durable.recent import RecentRequests
from podtrail.durable.records import ARRIVAL
from podtrail.durable.recovery import PipelineRecovery, RecoveredPipelines
from podtrail.durable.state import PipelineStates
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver, not_before
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.pipeline.storing import MakeChain, Store
from podtrail.storage import Journal, StorageError, StorageProvider

JOURNAL: Final = "pipelines"
"""The name of the journal in its store."""
_ROOM_AGAIN: Final = 1.0
"""Seconds until room is looked for again on a disk that takes nothing."""
_SECOND: Final = 1e9


class DurableStore:
    """Keeps what goes through some pipelines until it is decided and delivered."""

    def __init__(
        self,
        id: str,
        clock: PipelineClock,
        metrics: Metrics,
        log: logging.LoggerAdapter[logging.Logger],
        predecessor: Store | None = None,
    ) -> None:
        """Make the store that lives in the extension `id`.

        Args:
            id: of the extension.
            clock: the pipelines'.
            metrics: where its instruments live.
            log: its log.
            predecessor: on a reload that changes the extension, the store that this one goes on for: what that holds
                is in memory.
        """
        self.id = id
        self._clock = clock
        self._log = log
        self._journal: Journal | None = None
        self._arrivals: ArrivalLog | None = None
        assert predecessor is None or isinstance(predecessor, DurableStore), "all stores are made here"
        self._goes_on = predecessor is not None
        self._folder: Path | None = predecessor._folder if predecessor else None
        """Where the journal is that has what the pipelines hold."""
        self._owed: Owed = predecessor._owed if predecessor else Owed()
        self._recent: RecentRequests = predecessor._recent if predecessor else RecentRequests()
        self._drivers: Sequence[Driver] = ()
        self._durable: Mapping[str, Driver] = {}
        self._checkpointers: dict[str, Checkpointer] = {}
        self._generation: Generation | None = None
        self._segments: list[tuple[int, int]] = []
        self._saving: asyncio.Task[bool] | None = None
        self._pace = CheckpointPace()
        self._room_again = 0.0
        self._has_failed = False
        """Whether the last checkpoint could not be written, which was said."""
        labels = ("extension",)
        self._repeated = metrics.counter(
            "otelcol_extension_file_storage_repeated_spans",
            "Spans of requests that had been taken already and came again: acknowledged, not taken.",
            labels,
        )
        self._restored = metrics.counter(
            "otelcol_extension_file_storage_recovered_spans", "Spans replayed or restored at start.", labels
        )
        self._kept_back = metrics.counter(
            "otelcol_extension_file_storage_kept_back_batches",
            "Batches that were not delivered again at a recovery.",
            labels,
        )
        self._unreadable = metrics.counter(
            "otelcol_extension_file_storage_unreadable_entries", "What a recovery could not use.", labels
        )
        self._abandoned = metrics.counter(
            "otelcol_extension_file_storage_abandoned_spans",
            "Spans for exporters, or from receivers, that are no longer configured.",
            labels,
        )
        self._checkpoints = metrics.counter(
            "otelcol_extension_file_storage_checkpoints", "Checkpoints written.", labels
        )
        for counter in (self._repeated, self._restored, self._kept_back, self._abandoned, self._checkpoints):
            counter.add(0, id)

    def owe(self, pipeline: str) -> Callable[[str, Batch], Callable[[], None]]:
        """Return what the outlets of a pipeline ask for each batch: exporter and batch to what is called at its end."""

        def owe(exporter: str, batch: Batch) -> Callable[[], None]:
            return self._owed.begin(pipeline, exporter, batch)

        return owe

    def watch(self, pipeline: str, chain: ProcessorChain) -> None:
        """Have a chain, just made and still empty, be the one of a pipeline."""
        self._checkpointers[pipeline] = Checkpointer(chain)

    @property
    def is_open(self) -> bool:
        """Whether it has been opened."""
        return self._journal is not None

    async def open(
        self,
        provider: StorageProvider,
        settings: Settings,
        drivers: Mapping[str, Driver],
        *,
        make: MakeChain,
        retire: Callable[[PipelineSettings], Driver],
        running: bool,
    ) -> None:
        """Open the journal, and bring the pipelines to where an earlier process has left them.

        Args:
            provider: opens it.
            settings: as they are now.
            drivers: of the store's pipelines.
            make: makes chains of them.
            retire: makes the driver of a pipeline that is no longer configured.
            running: the pipelines run already, this is a reload.

        Raises:
            StartError: there is something to take up, which running pipelines can't.
            StorageError: it can't be opened.
        """
        journal = self._journal = await provider.open(JOURNAL)
        self._owed.written_by(self._write_soon)
        if journal.folder == self._folder:
            return
        if running and _holds_something(journal):
            raise StartError(
                f"extensions::{self.id}: it holds what an earlier podtrail has left, which pipelines that run already "
                "can't take up: restart podtrail"
            )
        before, self._folder = self._folder, journal.folder
        if self._goes_on:
            self._log.warning(
                "goes on in %s; %s is no longer needed, and a start on it would deliver again: remove it",
                journal.folder,
                before,
            )
            return
        began = time.monotonic()
        generation = Generation.of(settings, self._of(settings))
        recovery = PipelineRecovery(
            journal,
            settings,
            generation,
            drivers,
            make=make,
            checkpointers=self._checkpointers,
            retire=retire,
            recent=self._recent,
            clock=self._clock,
            log=self._log,
        )
        recovered = await recovery.run()
        self._segments = recovered.segments
        self._tell(recovered, time.monotonic() - began)

    def _of(self, settings: Settings) -> Sequence[PipelineSettings]:
        return [pipeline for pipeline in settings.pipelines if pipeline.durable == self.id]

    def _tell(self, recovered: RecoveredPipelines, seconds: float) -> None:
        self._restored.add(recovered.spans, self.id)
        self._kept_back.add(recovered.kept_back, self.id)
        self._unreadable.add(recovered.unreadable, self.id)
        self._abandoned.add(recovered.abandoned, self.id)
        if recovered.abandoned:
            self._log.error(
                "%d spans are for exporters, or from receivers, that are no longer configured, and dropped",
                recovered.abandoned,
            )
        if not recovered.spans:
            self._log.info("nothing to recover")
            return
        since = ""
        if recovered.since is not None:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(recovered.since / _SECOND))
            since = f" that came since {moment}"
        kept_back = f", {recovered.kept_back} batches of which were delivered before" if recovered.kept_back else ""
        self._log.info("recovered %d spans%s in %.1f s%s", recovered.spans, since, seconds, kept_back)

    async def lead(
        self,
        settings: Settings,
        drivers: Sequence[Driver],
        durable: Mapping[str, Driver],
    ) -> None:
        """Log what goes to these pipelines from now on.

        Args:
            settings: as they are now.
            drivers: all that the receivers of durable pipelines feed, in an order that all agree on.
            durable: the durable ones among them.
        """
        assert self._journal is not None, "it is open"
        self._generation = Generation.of(settings, self._of(settings))
        self._drivers = tuple(drivers)
        self._durable = durable
        self._arrivals = ArrivalLog(
            self._journal,
            drivers,
            self._clock,
            self._owed,
            self._recent,
            self._count_repeated,
            self._see_to_checkpoint,
            self._see_to_room,
        )
        await self.checkpoint()

    @property
    def arrivals(self) -> ArrivalLog:
        """Where receivers hand over."""
        assert self._arrivals is not None, "it leads somewhere"
        return self._arrivals

    async def checkpoint(self) -> None:
        """Write a checkpoint now."""
        if self._saving is not None:
            await asyncio.wait({self._saving})
        async with AsyncExitStack() as locks:
            for driver in self._drivers:
                await locks.enter_async_context(driver.lock)
            saving = self._begin_checkpoint()
        if saving is not None:
            await saving

    async def close(self, *, checkpoint: bool) -> None:
        """Let go of the journal."""
        journal = self._journal
        if journal is None:
            return
        if self._arrivals is not None:
            await self._arrivals.idle()
            if checkpoint:
                await self.checkpoint()
                undecided = sum(driver.chain.held() for driver in self._durable.values())
                owed = sum(batch.span_count for _, batch in self._owed.batches())
                if undecided or owed:
                    self._log.info(
                        "%d undecided spans and %d to be delivered stay in the store for the next start",
                        undecided,
                        owed,
                    )
        if self._saving is not None:
            await asyncio.wait({self._saving})
        self._owed.note(journal, self._clock.now())
        self._journal = None
        await journal.close()

    async def discard(self) -> None:
        """Forget everything: the pipelines are no longer durable, what they hold is in memory only."""
        journal, self._journal = self._journal, None
        if journal is not None:
            nothing = PipelineStates(Generation({}, {}, ()), {}, {}, (), b"")
            await self._save(journal, segment := journal.cut(), segment, segment, list(nothing.pieces()))
            await journal.close()

    def _count_repeated(self, spans: int) -> None:
        self._repeated.add(spans, self.id)

    def _write_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        if self._journal is not None:
            self._owed.note(self._journal, self._clock.now())

    def _see_to_checkpoint(self) -> None:
        assert self._journal is not None, "something was written"
        if self._saving is None and self._pace.due(self._journal.since_cut, self._inside(), self._came()):
            self._begin_checkpoint()

    def _see_to_room(self) -> None:
        """What the log no longer needs is removed with a checkpoint, which without arrivals would never be due."""
        now = asyncio.get_running_loop().time()
        if self._saving is None and now >= self._room_again:
            self._room_again = now + _ROOM_AGAIN
            self._begin_checkpoint()

    def _inside(self) -> int:
        """Return how many spans are undecided or owed."""
        return sum(driver.chain.held() for driver in self._durable.values()) + self._owed.spans

    def _came(self) -> int:
        """Return how many spans have come, where pipelines get the same not twice."""
        return max((driver.chain.ledger.received for driver in self._durable.values()), default=0)

    def _begin_checkpoint(self) -> "asyncio.Task[bool] | None":
        """Take the state as it is, with all drivers locked, and have it saved; None when it can't be taken."""
        journal = self._journal
        assert journal is not None, "it is open"
        assert self._generation is not None, "it leads somewhere"
        try:
            chains = {id: self._checkpointers[id].take() for id in self._durable}
        except CheckpointError as error:
            self._log.error("a checkpoint can't be taken, the log is kept instead: %s", error)
            return None
        state = PipelineStates(
            generation=self._generation,
            reached={id: driver.reached for id, driver in self._durable.items()},
            chains=chains,
            owed=self._owed.batches(),
            recent=self._recent.pack(),
        )
        self._pace.begun(self._inside(), self._came())
        segment = journal.cut()
        now = not_before(self._drivers, 0)
        if not self._segments or self._segments[-1][0] != segment:
            self._segments.append((segment, now))
        oldest = self._oldest() or now
        needed = max((number for number, begins in self._segments if begins <= oldest), default=None)
        # What was recorded long ago, and replayed, would keep all of it for ever.
        before = segment if needed is None or journal.size > self._pace.most_kept else needed
        self._saving = asyncio.create_task(
            self._save(journal, segment, before, needed, list(state.pieces())), name="checkpoint"
        )
        return self._saving

    def _oldest(self) -> int | None:
        """Return the arrival of the oldest span that is undecided or owed, Unix nanoseconds."""
        sinces = [self._owed.since(), *(driver.chain.held_since() for driver in self._durable.values())]
        return min((since for since in sinces if since is not None), default=None)

    async def _save(
        self, journal: Journal, segment: int, before: int, needed: int | None, pieces: Sequence[bytes | memoryview]
    ) -> bool:
        """Save a state, and forget what is `before`; return whether that was done.

        Where there is no room for it, what the log does not need (`needed` is the first that it does) goes first. Until
        the state is saved after all, a crash would cost memories, such as numbers of attempts, but no span.
        """
        try:
            try:
                await journal.save(segment, pieces)
            except StorageError as error:
                if needed is None or not _is_full(error):
                    raise
                await journal.make_room(needed)
                await journal.save(segment, pieces)
        except StorageError as error:
            level = logging.DEBUG if self._has_failed else logging.WARNING
            self._has_failed = True
            self._log.log(level, "a checkpoint can't be written, the log is kept instead: %s", error.reason)
            return False
        finally:
            self._saving = None
        self._has_failed = False
        self._pace.ended(sum(map(len, pieces)))
        self._checkpoints.add(1, self.id)
        journal.forget(min(segment, before))
        self._segments = [(number, begins) for number, begins in self._segments if number >= min(segment, before)]
        return True


def _is_full(error: StorageError) -> bool:
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _holds_something(journal: Journal) -> bool:
    """Say whether there is anything to take up."""
    start = 0
    for segment, data in journal.saved():
        try:
            state = PipelineStates.read(data)
        except ValueError:
            return True
        if state.owed or any(state.generation.pipelines):
            return True
        start = segment
        break
    return any(entry.kind == ARRIVAL and position.segment >= start for position, entry in journal.entries())
