"""The durable pipelines of one store: opened and recovered, logged, kept in checkpoints, closed."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from podtrail.component import Metrics, StartError
from podtrail.config.types import SECOND
from podtrail.durable.checkpoints import Amounts, CheckpointWriter
from podtrail.durable.generation import Generation
from podtrail.durable.instruments import DurableInstruments
from podtrail.durable.log import ArrivalLog
from podtrail.durable.owed import Owed
from podtrail.durable.recent import RecentRequests
from podtrail.durable.records import ARRIVAL
from podtrail.durable.recovery import PipelineRecovery
from podtrail.durable.state import PipelineStates
from podtrail.expiry import ExpiryTimer
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver, not_before
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.pipeline.storing import MakeChain, Store
from podtrail.storage import Journal, StorageError, StorageProvider

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

JOURNAL: Final = "pipelines"
"""The name of the journal in its store."""


class DurableStore:
    """Keeps what goes through some pipelines until it is decided and delivered."""

    def __init__(
        self,
        id: str,
        clock: PipelineClock,
        metrics: Metrics,
        log: logging.LoggerAdapter[logging.Logger],
        predecessor: Store | None = None,
        tracer: "Tracer | None" = None,
    ) -> None:
        """Make the store that lives in the extension `id`.

        Args:
            id: of the extension.
            clock: the pipelines'.
            metrics: where its instruments live.
            log: its log.
            predecessor: on a reload that changes the extension, the store that this one goes on for: what that holds
                is in memory.
            tracer: makes podtrail's own spans of checkpoints; None for none.
        """
        self.id = id
        self._clock = clock
        self._log = log
        self._journal: Journal | None = None
        self._left: Journal | None = None
        """That which was closed, and may be emptied still."""
        self._arrivals: ArrivalLog | None = None
        assert predecessor is None or isinstance(predecessor, DurableStore), "all stores are made here"
        self._goes_on = predecessor is not None
        self._folder: Path | None = predecessor._folder if predecessor else None
        """Where the journal is that has what the pipelines hold."""
        self._owed: Owed = predecessor._owed if predecessor else Owed()
        self._recent: RecentRequests = predecessor._recent if predecessor else RecentRequests()
        self._expiry = ExpiryTimer(self._forget)
        self._drivers: Sequence[Driver] = ()
        self._durable: Mapping[str, Driver] = {}
        self._checkpointers: dict[str, Checkpointer] = {}
        self._generation: Generation | None = None
        self._instruments = DurableInstruments(id, metrics, log)
        self._checkpoints = CheckpointWriter(log, self._instruments.checkpointed, tracer)

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
        folder = journal.folder.resolve()
        if folder == self._folder:
            return
        if running and _holds_something(journal):
            raise StartError(
                f"extensions::{self.id}: it holds what an earlier podtrail has left, which pipelines that run already "
                "can't take up: restart podtrail"
            )
        self._folder = folder
        if self._goes_on:  # in a storage of others, which may have changed its place
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
        self._checkpoints.segments, self._checkpoints.saved = recovered.segments, recovered.generation
        self._instruments.recovered(recovered, time.monotonic() - began)

    def _of(self, settings: Settings) -> Sequence[PipelineSettings]:
        return [pipeline for pipeline in settings.pipelines if pipeline.durable == self.id]

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
            self._instruments.repeated,
            self._not_ready,
            self._see_to_checkpoint,
            self._see_to_room,
        )
        self._expiry.arm()
        await self.checkpoint()

    @property
    def arrivals(self) -> ArrivalLog:
        """Where receivers hand over."""
        assert self._arrivals is not None, "it leads somewhere"
        return self._arrivals

    async def checkpoint(self) -> None:
        """Write a checkpoint now."""
        await self._checkpoints.idle()
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
                if self._checkpoints.saved is None and not journal.is_whole:
                    self._log.error("no checkpoint could be written: what is remembered of decisions is lost")
                undecided = sum(driver.chain.held() for driver in self._durable.values())
                owed = sum(batch.span_count for _, batch in self._owed.batches())
                if undecided or owed:
                    self._log.info(
                        "%d undecided spans and %d to be delivered stay in the store for the next start",
                        undecided,
                        owed,
                    )
        await self._checkpoints.idle()
        self._owed.note(journal, self._clock.now())
        self._journal, self._left = None, journal
        self._expiry.cancel()
        await journal.close()

    async def discard(self) -> None:
        """Forget everything: the pipelines are no longer durable, what they hold is in memory only."""
        journal = self._journal or self._left
        self._journal = self._left = None
        if journal is None:
            return
        nothing = PipelineStates(Generation({}, {}, ()), {}, {}, (), b"")
        try:
            if journal.closed:
                await journal.open()
            segment = journal.cut()
            await journal.save(segment, nothing.prepared()())
            await journal.clear()
        except StorageError as error:
            self._log.error(
                "%s can't be emptied (%s), and a start with durable would deliver again: remove the folder once "
                "podtrail is down",
                journal.folder,
                error.reason,
            )
        await journal.close()

    def _write_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        if self._journal is not None:
            self._owed.note(self._journal, self._clock.now())

    def _not_ready(self) -> str | None:
        """Say why nothing may be written: what a recovery would decide otherwise than it is decided now."""
        if self._checkpoints.saved == self._generation:
            return None
        assert self._journal is not None, "it is open"
        return f"{self._journal.folder} takes no checkpoint of this configuration"

    def _see_to_checkpoint(self) -> None:
        assert self._journal is not None, "something was written"
        self._expiry.arm()
        if self._checkpoints.is_due(self._journal, self._amounts()):
            self._begin_checkpoint()

    def _forget(self) -> float | None:
        """Forget requests that came too long ago; return in how many seconds there are more."""
        left = self._recent.expire(self._clock.now())
        return None if left is None else left / SECOND

    def _see_to_room(self) -> None:
        """What the log no longer needs is removed with a checkpoint, which without arrivals would never be due."""
        if self._checkpoints.makes_room():
            self._begin_checkpoint()

    def _amounts(self) -> Amounts:
        drivers = self._durable.values()
        inside = sum(driver.chain.held() for driver in drivers) + self._owed.spans
        return Amounts(inside, came=max((driver.chain.ledger.received for driver in drivers), default=0))

    def _begin_checkpoint(self) -> "asyncio.Task[bool] | None":
        """Take the state as it is, with all drivers locked, and have it saved; None when it can't be taken."""
        journal = self._journal
        assert journal is not None, "it is open"
        assert self._generation is not None, "it leads somewhere"
        try:
            chains = {id: self._checkpointers[id].take() for id in self._durable}
        except CheckpointError as error:
            self._log.error("a checkpoint can't be taken, the log is kept instead: %s", error)
            # Nor will another: recovery has the log and what is configured then.
            self._checkpoints.saved = self._generation
            return None
        state = PipelineStates(
            generation=self._generation,
            reached={id: driver.reached for id, driver in self._durable.items()},
            chains=chains,
            owed=self._owed.batches(),
            recent=self._recent.pack(),
        )
        now = not_before(self._drivers, 0)
        return self._checkpoints.begin(journal, state, now, self._oldest(), self._amounts())

    def _oldest(self) -> int | None:
        """Return the arrival of the oldest span that is undecided or owed, Unix nanoseconds."""
        sinces = [self._owed.since(), *(driver.chain.held_since() for driver in self._durable.values())]
        return min((since for since in sinces if since is not None), default=None)


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
