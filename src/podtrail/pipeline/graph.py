"""The running components of a configuration: all made, wired, started in order and stopped in reverse.

Start: extensions, exporters, their queues, timers of the pipelines, receivers last. Stop: receivers first, then what
the pipelines hold goes into the queues, then the queues are emptied, within a deadline.

On reload a graph follows another: what is configured as before goes on as it is (receivers with their connections,
extensions, exporters with their queues), and processors take over what their predecessors hold.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from podtrail.component import (
    BatchObserver,
    ComponentError,
    Exporter,
    Extension,
    Ledger,
    PipelineWatcher,
    Receiver,
    StoringConfig,
    WantsStorage,
)
from podtrail.component.failures import FailureReporter, told
from podtrail.config.types import DeliverySettings
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.containment import ContainedObserver, contained
from podtrail.pipeline.driver import Driver, Lag, Outlet, Owe
from podtrail.pipeline.fan_out import DEADLINE, FanOutConsumer
from podtrail.pipeline.host import Host, make_chain, matching
from podtrail.pipeline.ledger import Balance, balance, left_so_far
from podtrail.pipeline.running import LONGEST_STOP, Running
from podtrail.pipeline.sending import SendingQueue
from podtrail.pipeline.settings import ComponentSettings, PipelineSettings, Settings
from podtrail.pipeline.stores import Stores
from podtrail.pipeline.storing import MakeStore
from podtrail.storage import StorageProvider

_GRACE = 2.0
"""Seconds that a receiver's batches under way get on reload, before the receiver is started anew."""


class Graph:
    """All components of a configuration, wired. `start`, then `run`, then `stop`; once each."""

    def __init__(
        self,
        settings: Settings,
        host: Host,
        clock: PipelineClock,
        *,
        observers: Sequence[BatchObserver] = (),
        predecessor: "Graph | None" = None,
        make_store: MakeStore | None = None,
    ) -> None:
        """Wire what is configured.

        Args:
            settings: say which components, and how.
            host: what they share.
            clock: of the pipelines.
            observers: are shown what leaves the pipelines.
            predecessor: on reload, the graph that this one follows.
            make_store: makes the stores of durable pipelines; None where there are none.
        """
        self.settings = settings
        self._host = host
        self._clock = clock
        self._predecessor = predecessor
        self._successor: Graph | None = None
        self.extensions = {id: self._extension(id) for id in settings.service.extensions}
        used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.exporters)
        self.exporters = {id: self._exporter(id) for id in used}
        self.queues = {id: self._queue(id) for id in used}
        watching = [ContainedObserver(observer, host.failures(type(observer).__name__)) for observer in observers]
        watching += [ContainedObserver(e.component, e.failures) for e in self.extensions.values()]
        host.listeners[:] = [observer for observer in watching if observer.listens]
        seeing = [observer for observer in watching if observer.observes]
        used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.receivers)
        self.receivers = {id: self._receiver(id) for id in used}
        before = predecessor.stores if predecessor else None
        self.stores: Stores = Stores(settings, host, clock, self.extensions, make_store, before)
        self.drivers = [self._driver(pipeline, seeing) for pipeline in settings.pipelines]
        self._introduce()
        self._retired: list[Driver] = []
        """Drivers of pipelines that a reload has removed: what they put into queues is still owed."""
        self._joining: list[tuple[Driver, Outlet]] = []
        self._timers: list[asyncio.Task[None]] = []
        self._sources: dict[str, asyncio.Task[None]] = {}
        self._consumers: dict[str, FanOutConsumer] = {}

    def _receiver(self, id: str) -> Running[Receiver]:
        settings = self.settings.receivers[id]
        before = self._predecessor.receivers.get(id) if self._predecessor else None
        storage = self._storage_of(settings)
        if before and self._predecessor and before.settings == settings:
            theirs = self._predecessor._storage_of(settings)
            if theirs is storage:
                return before
        made: Running[Receiver] = self._made(settings)
        if storage is not None and isinstance(made.component, WantsStorage):
            made.component.keep_in(storage)
        return made

    def _storage_of(self, receiver: ComponentSettings) -> Extension | None:
        """Return the storage in which a receiver keeps how far it has come."""
        config = receiver.config
        if not isinstance(config, StoringConfig) or config.storage is None:
            return None
        return self.extensions[config.storage].component

    def _extension(self, id: str) -> Running[Extension]:
        settings = self.settings.extensions[id]
        before = self._predecessor.extensions.get(id) if self._predecessor else None
        if before and before.settings == settings:
            return before
        return self._made(settings)

    def _exporter(self, id: str) -> Running[Exporter]:
        settings = self.settings.exporters[id]
        before = self._predecessor.exporters.get(id) if self._predecessor else None
        if before and before.settings == settings:
            return before
        return self._made(settings)

    def _made(self, settings: ComponentSettings) -> Running[Any]:
        context = self._host.context(settings.id, resumed=self._predecessor is not None)
        return Running(settings, self._host.make(settings, context), self._host.failures(settings.id))

    def _queue(self, id: str) -> Running[SendingQueue]:
        running = self.exporters[id]
        config = running.settings.config
        delivery = config if isinstance(config, DeliverySettings) else None
        storage = self._storage(delivery)
        durable = all(p.durable is not None for p in self.settings.pipelines if id in p.exporters)
        before = self._predecessor.queues.get(id) if self._predecessor else None
        same = self._predecessor is not None and self._predecessor.exporters.get(id) is running
        if before and same and (before.component.storage, before.component.durable) == (storage, durable):
            return before
        context = self._host.context(id)
        predecessor = before.component if before else None
        queue = SendingQueue(
            running.component,
            id,
            delivery,
            context.metrics,
            context.log,
            rng=context.rng,
            storage=storage,
            durable=durable,
            predecessor=predecessor,
        )
        return Running(running.settings, queue, running.failures)

    def _storage(self, delivery: DeliverySettings | None) -> StorageProvider | None:
        """Return where a queue is kept on disk, if it is."""
        if delivery is None or not delivery.sending_queue.enabled or delivery.sending_queue.storage is None:
            return None
        storage = self.extensions[delivery.sending_queue.storage].component
        assert isinstance(storage, StorageProvider), "the settings name a storage"
        return storage

    def _driver(self, pipeline: PipelineSettings, observers: Sequence[ContainedObserver]) -> Driver:
        before = self._predecessor.driver(pipeline.id) if self._predecessor else None
        chain = self._chain(pipeline, self.settings, before.chain.ledger if before else Ledger())
        store = self.stores.of(pipeline)
        if store is not None:
            store.watch(pipeline.id, chain)
        patient = all(self.receivers[id].component.finite for id in pipeline.receivers)
        owe = None if store is None else store.owe(pipeline.id)
        outlets = [Outlet(self.queues[id].component, id, patient=patient, owe=owe) for id in pipeline.exporters]
        return Driver(pipeline.id, chain, outlets, observers, self._clock)

    def _chain(self, pipeline: PipelineSettings, settings: Settings, ledger: Ledger) -> ProcessorChain:
        lag = Lag(self._clock)
        chain = lag.chain = make_chain(pipeline, settings, self._host, ledger, lag, contained)
        return chain

    def _introduce(self) -> None:
        """Tell each outlet of the others that the same receivers feed."""
        wired = [
            (driver.outlets, set(p.receivers)) for driver, p in zip(self.drivers, self.settings.pipelines, strict=True)
        ]
        for outlets, receivers in wired:
            reached = {outlet.queue for others, fed_by in wired if receivers & fed_by for outlet in others}
            for outlet in outlets:
                outlet.beside = reached - {outlet.queue}

    def driver(self, pipeline: str) -> Driver | None:
        """Return the driver of a pipeline, None when there is no such pipeline."""
        return next((driver for driver in self.drivers if driver.id == pipeline), None)

    async def start(self) -> None:
        """Start everything but the receivers' work.

        On reload the predecessor has stopped by now: what has left it until then, a new exporter never gets.

        Raises:
            StartError: a component can't; the text names it, and nothing is left open.
        """
        for driver, outlet in self._joining:
            outlet.missed = left_so_far(driver.chain.ledger, driver.chain.held())
        try:
            everything: Sequence[Running[Any]] = (
                *self.extensions.values(),
                *self.exporters.values(),
                *self.queues.values(),
            )
            for running in everything:
                await running.start()
            reload = self._predecessor is not None
            await self.stores.start(self.drivers, make=self._chain, retire=self._retire, running=reload)
            for receiver in self.receivers.values():
                await receiver.start()
        except BaseException:
            await self.close()
            raise
        self._timers = [asyncio.create_task(driver.run(), name=f"timer of {driver.id}") for driver in self.drivers]
        for id, receiver in self.receivers.items():
            fed = self._fed_by(id)
            logged = self.stores.of_any(fed)
            log = None if logged is None else logged.arrivals
            if id in self._sources:
                self._consumers[id].lead_to(fed, log)
            else:
                deadline = None if receiver.component.finite else DEADLINE
                consumer = self._consumers[id] = FanOutConsumer(fed, self._clock, deadline, receiver=id, log=log)
                self._sources[id] = asyncio.create_task(receiver.component.run(consumer), name=f"receiver {id}")
        for failures, watcher in self._watchers():
            failures.attempt("ready", watcher.ready, None)

    def _retire(self, pipeline: PipelineSettings, owe: Owe) -> Driver:
        """Return a driver for a pipeline that a predecessor had: it leads to those of its exporters that are left."""
        outlets = [Outlet(self.queues[id].component, id, owe=owe) for id in pipeline.exporters if id in self.queues]
        driver = Driver(pipeline.id, ProcessorChain((), Ledger()), outlets, (), self._clock)
        self._retired.append(driver)
        return driver

    def _watchers(self) -> Iterator[tuple[FailureReporter, PipelineWatcher]]:
        for running in self.extensions.values():
            if isinstance(running.component, PipelineWatcher):
                yield running.failures, running.component

    def _fed_by(self, receiver: str) -> Sequence[Driver]:
        fed = zip(self.drivers, self.settings.pipelines, strict=True)
        return [driver for driver, pipeline in fed if receiver in pipeline.receivers]

    async def run(self, *, finite_only: bool = False) -> None:
        """Return when every receiver is exhausted; with `finite_only`, when those are that can be.

        An error in a receiver or a timer ends the run with that error.

        Raises:
            ComponentError: a receiver fails; it names the receiver.
        """
        finite = {task for id, task in self._sources.items() if self.receivers[id].component.finite}
        sources = set(self._sources.values())
        awaited = finite if finite_only and finite else sources
        pending = sources | set(self._timers)
        while awaited & pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for id, source in self._sources.items():
                if source in done and not source.cancelled() and isinstance(error := source.exception(), Exception):
                    self.receivers[id].failures.report("run", error, "podtrail stops")
                    raise ComponentError(f"receivers::{id}: failed in run: {told(error)}") from error
            for task in done:
                task.result()

    async def stop_receiving(self, successor: "Graph | None" = None) -> None:
        """Stop the receivers and the timers; let go of ports and files of the receivers.

        Receivers that `successor` shares go on, but are let in no further until it starts.
        """
        for failures, watcher in self._watchers():
            failures.attempt("not_ready", watcher.not_ready, None)
        shared = {id for id in self._sources if successor and successor.receivers.get(id) is self.receivers[id]}
        for id in shared:
            self._consumers[id].shut()
        await self._stop_receivers(self._sources.keys() - shared)
        for timer in self._timers:
            timer.cancel()
        await asyncio.gather(*self._timers, return_exceptions=True)
        idle = await asyncio.gather(*(self._consumers[id].idle(_GRACE) for id in shared))
        await self._stop_receivers({id for id, is_idle in zip(shared, idle, strict=True) if not is_idle})

    async def _stop_receivers(self, ids: Collection[str]) -> None:
        sources = [self._sources.pop(id) for id in ids]
        for source in sources:
            source.cancel()
        if sources:
            await asyncio.wait(sources, timeout=LONGEST_STOP)
        for id, source in zip(ids, sources, strict=True):
            if not source.done():
                self.receivers[id].failures.report("run", TimeoutError("it goes on although it was told to stop"))
        await asyncio.gather(*[source for source in sources if source.done()], return_exceptions=True)
        await asyncio.gather(*[self.receivers[id].stop() for id in ids])

    def take_over(self) -> None:
        """On reload, between the predecessor's `stop_receiving` and its `stop`: take what its processors hold."""
        assert self._predecessor is not None
        self._predecessor._successor = self
        for id in [id for id in self.receivers if id in self._predecessor._sources]:
            self._sources[id] = self._predecessor._sources.pop(id)
            self._consumers[id] = self._predecessor._consumers[id]
        gone = [driver for driver in self._predecessor.drivers if self.driver(driver.id) is None]
        self._retired = [*self._predecessor._retired, *gone]
        for driver, pipeline in zip(self.drivers, self.settings.pipelines, strict=True):
            old = self._predecessor.driver(driver.id)
            if old is None:
                continue
            theirs = next(p for p in self._predecessor.settings.pipelines if p.id == driver.id)
            pairs = matching(pipeline.processors, theirs.processors, self.settings, self._predecessor.settings)
            driver.reached = max(self._clock.now(), old.reached)
            driver.chain.take_over(old.chain, pairs, driver.reached)
            ledgers = {outlet.exporter: outlet for outlet in old.outlets}
            for outlet in driver.outlets:
                if outlet.exporter in ledgers:
                    outlet.ledger, outlet.missed = ledgers[outlet.exporter].ledger, ledgers[outlet.exporter].missed
                else:
                    self._joining.append((driver, outlet))

    async def stop(self, seconds: float, *, patient: bool = False) -> None:
        """Decide what is undecided, deliver within `seconds`, count the rest as dropped, let go of everything.

        When `patient` it may take longer, as long as something is delivered every so many seconds.
        """
        now = asyncio.get_running_loop().time
        until = now() + seconds
        await self.stop_receiving()
        undecided = (
            set() if patient or self._successor else {p.id for p in self.settings.pipelines if p.durable is not None}
        )
        try:
            # What is undecided in a durable pipeline is for the next start to decide; what a successor has not taken
            # over leaves now.
            await asyncio.gather(*(driver.drain() for driver in self.drivers if driver.id not in undecided))
            left = seconds if patient else max(0.0, until - now())
            queues = [running.component for running in self._own(self.queues).values()]
            await asyncio.gather(*(queue.drain(left, patient=patient) for queue in queues))
            await self._leave_stores(checkpoint=True)
        finally:
            await self.close()

    async def close(self) -> None:
        """Let go of everything as it stands; what queues hold is lost, and counted so, unless it is in a store."""
        await self._leave_stores(checkpoint=False)
        groups: Sequence[dict[str, Running[Any]]] = (self.receivers, self.queues, self.exporters, self.extensions)
        for group in groups:
            await asyncio.gather(*[running.stop() for running in self._own(group).values()])

    async def _leave_stores(self, *, checkpoint: bool) -> None:
        owner, successor = self._other(), self._successor
        await self.stores.leave(
            owner.stores if owner else None, successor.stores if successor else None, checkpoint=checkpoint
        )

    def _other(self) -> "Graph | None":
        """Return the graph that has what is shared: on reload the successor, or the predecessor still."""
        return self._successor or (self._predecessor if self._predecessor and not self._timers else None)

    def _own(self, components: "dict[str, Running[Any]]") -> "dict[str, Running[Any]]":
        """Return those components that did not pass to the successor (or belong to the predecessor still)."""
        other = self._other()
        kept = (
            set()
            if other is None
            else {
                id(running)
                for group in (other.receivers, other.extensions, other.exporters, other.queues)
                for running in group.values()
            }
        )
        return {name: running for name, running in components.items() if id(running) not in kept}

    def settled(self, arrived: int) -> bool:
        """Say whether everything that arrived until then is decided and out of the queues."""
        held = [p.held_since() for driver in self.drivers for p in driver.chain.processors]
        queued = any(running.component.held() for running in self.queues.values())
        leaving = any(driver.chain.outbox for driver in self.drivers)
        return not queued and not leaving and all(since is None or since > arrived for since in held)

    def balances(self) -> Sequence[Balance]:
        """Return the ledger, a line an exporter."""
        durable = {pipeline.id for pipeline in self.settings.pipelines if pipeline.durable is not None}
        return [
            balance(
                id,
                [(d, o) for d in (*self.drivers, *self._retired) for o in d.outlets if o.exporter == id],
                queue,
                durable,
            )
            for id, queue in ((id, self.queues[id].component) for id in self.exporters)
        ]
