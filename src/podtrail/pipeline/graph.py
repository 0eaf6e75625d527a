"""The running components of a configuration: all made, wired, started in order and stopped in reverse.

Start: extensions, exporters, their queues, timers of the pipelines, receivers last. Stop: receivers first, then what
the pipelines hold goes into the queues, then the queues are emptied, within a deadline.

On reload a graph follows another: what is configured as before goes on as it is (receivers with their connections,
extensions, exporters with their queues), and processors take over what their predecessors hold.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from podtrail.component import (
    BatchObserver,
    Ledger,
    PipelineWatcher,
)
from podtrail.component.failures import FailureReporter
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.containment import ContainedObserver, contained
from podtrail.pipeline.driver import Driver, Lag, Outlet, Owe
from podtrail.pipeline.graph_components import GraphComponents
from podtrail.pipeline.host import Host, left_over, make_chain, matching, report_decided_early
from podtrail.pipeline.ledger import Balance, balance, left_so_far
from podtrail.pipeline.moved_stores import refuse_moves
from podtrail.pipeline.partitioning import FedPipelines, MakePartitions
from podtrail.pipeline.receiving import RunningReceivers
from podtrail.pipeline.running import Running
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.pipeline.stores import Stores
from podtrail.pipeline.storing import MakeStore


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
        make_partitions: MakePartitions | None = None,
    ) -> None:
        """Wire what is configured.

        Args:
            settings: say which components, and how.
            host: what they share.
            clock: of the pipelines.
            observers: are shown what leaves the pipelines.
            predecessor: on reload, the graph that this one follows.
            make_store: makes the stores of durable pipelines; None where there are none.
            make_partitions: makes what partitioned receivers feed; None where there are none.

        Raises:
            StartError: a predecessor keeps something where this would not find it.
        """
        if predecessor is not None:
            refuse_moves(settings, predecessor.settings)
        self.settings: Settings = settings
        self._host = host
        self._metrics = host.metrics.owned()
        """The processors'."""
        self._clock = clock
        self._predecessor = predecessor
        self._successor: Graph | None = None
        self._components: GraphComponents = GraphComponents(
            settings, host, predecessor._components if predecessor else None
        )
        self.extensions, self.receivers = self._components.extensions, self._components.receivers
        self.exporters, self.queues = self._components.exporters, self._components.queues
        watching = [ContainedObserver(observer, host.failures(type(observer).__name__)) for observer in observers]
        watching += [ContainedObserver(e.component, e.failures) for e in self.extensions.values()]
        host.listeners[:] = [observer for observer in watching if observer.listens]
        seeing = [observer for observer in watching if observer.observes]
        before = predecessor.stores if predecessor else None
        self.stores: Stores = Stores(settings, host, clock, self.extensions, make_store, before)
        self._followed = self._followed_drivers()
        self.drivers = [self._driver(pipeline, seeing) for pipeline in settings.pipelines]
        self._introduce()
        self._retired: list[Driver] = []
        """Drivers of pipelines that a reload has removed: what they put into queues is still owed."""
        self._joining: list[tuple[Driver, Outlet]] = []
        self._timers: list[asyncio.Task[None]] = []
        self._receiving: RunningReceivers = RunningReceivers(
            self.receivers, clock, make_partitions, host.tracer, host.refusals
        )

    def _driver(self, pipeline: PipelineSettings, observers: Sequence[ContainedObserver]) -> Driver:
        before = self._followed.get(pipeline.id)
        chain = self._chain(pipeline, self.settings, before.chain.ledger if before else Ledger())
        store = self.stores.of(pipeline)
        if store is not None:
            store.watch(pipeline.id, chain)
        patient = all(self.receivers[id].component.finite for id in pipeline.receivers)
        owe = None if store is None else store.owe(pipeline.id)
        outlets = [
            Outlet(self.queues[id].component, id, patient=patient, owe=owe, of_partitions=pipeline.partitioned)
            for id in pipeline.exporters
        ]
        return Driver(pipeline.id, chain, outlets, observers, self._clock)

    def _chain(self, pipeline: PipelineSettings, settings: Settings, ledger: Ledger) -> ProcessorChain:
        lag, host = Lag(self._clock), replace(self._host, metrics=self._metrics)
        chain = lag.chain = make_chain(pipeline, settings, host, ledger, lag, contained)
        return chain

    def _followed_drivers(self) -> dict[str, Driver]:
        """Return which driver of the predecessor each pipeline follows: that of its name, or of the one renamed."""
        if self._predecessor is None:
            return {}
        theirs = {pipeline.id: pipeline for pipeline in self._predecessor.settings.pipelines}
        drivers = {driver.id: driver for driver in self._predecessor.drivers}
        found = {p.id: drivers[p.id] for p in self.settings.pipelines if p.id in theirs}
        left = [pipeline for pipeline in self.settings.pipelines if pipeline.id not in found]
        others = [pipeline for id, pipeline in theirs.items() if id not in found]
        # What a store or Kafka keeps of a pipeline is under its name.
        if len(left) == len(others) == 1 and not (left[0].outlives or others[0].outlives):
            found[left[0].id] = drivers[others[0].id]
        return found

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
        self._metrics.show()
        for driver, outlet in self._joining:
            outlet.missed = left_so_far(driver.chain.ledger, driver.held())
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
            await self.stores.undo()
            await self.close()
            raise
        await self.stores.started()
        self._timers = [asyncio.create_task(driver.run(), name=f"timer of {driver.id}") for driver in self.drivers]
        for id, receiver in self.receivers.items():
            if receiver.settings.factory.partitioned:
                self._receiving.feed_partitions(id, self._fed_pipelines)
                continue
            fed = self._fed_by(id)
            logged = self.stores.of_any(fed)
            self._receiving.feed(id, fed, None if logged is None else logged.arrivals)
        for failures, watcher in self._watchers():
            failures.attempt("ready", watcher.ready, None)

    def _fed_pipelines(self, receiver: str) -> FedPipelines:
        return FedPipelines(self.settings, self._fed_by(receiver), self._host, self._retire)

    def _retire(self, pipeline: PipelineSettings, owe: Owe | None = None) -> Driver:
        """Return a driver for a pipeline that a predecessor had: it leads to those of its exporters that are left."""
        outlets = [
            Outlet(self.queues[id].component, id, owe=owe, of_partitions=owe is None)
            for id in pipeline.exporters
            if id in self.queues
        ]
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
        await self._receiving.ended(self._timers, finite_only=finite_only)

    async def stop_receiving(self, successor: "Graph | None" = None) -> None:
        """Stop the receivers and the timers; let go of ports and files of the receivers.

        Receivers that `successor` shares go on, but are let in no further until it starts.
        """
        for failures, watcher in self._watchers():
            failures.attempt("not_ready", watcher.not_ready, None)
        shared = await self._receiving.stop_but(successor.receivers if successor else {})
        for timer in self._timers:
            timer.cancel()
        await asyncio.gather(*self._timers, return_exceptions=True)
        await self._receiving.settle(shared)

    def take_over(self) -> None:
        """On reload, between the predecessor's `stop_receiving` and its `stop`: take what its processors hold."""
        assert self._predecessor is not None
        self._metrics.show()
        self._predecessor._successor = self
        self._predecessor._predecessor = None  # of no use to it any more
        self._receiving.take_over(self._predecessor._receiving)
        wired = {p.id: p.processors for p in self._predecessor.settings.pipelines}
        gone = [driver for driver in self._predecessor.drivers if driver not in self._followed.values()]
        self._retired = [*self._predecessor._retired, *gone]
        for old in gone:
            report_decided_early(self._host.metrics, old.id, left_over(wired[old.id], old.chain))
        for driver, pipeline in zip(self.drivers, self.settings.pipelines, strict=True):
            old_driver = self._followed.get(driver.id)
            if old_driver is None:
                continue
            old, theirs = old_driver, wired[old_driver.id]
            pairs = matching(pipeline.processors, theirs, self.settings, self._predecessor.settings)
            left = left_over(theirs, old.chain, {at for _, at in pairs})
            report_decided_early(self._host.metrics, old.id, left)
            driver.reached = max(self._clock.now(), old.reached)
            driver.chain.take_over(old.chain, pairs, driver.reached)
            ledgers = {outlet.exporter: outlet for outlet in old.outlets}
            for outlet in driver.outlets:
                if outlet.exporter in ledgers:
                    outlet.ledger, outlet.missed = ledgers[outlet.exporter].ledger, ledgers[outlet.exporter].missed
                else:
                    self._joining.append((driver, outlet))
        self._receiving.lead_partitions_to(self._fed_pipelines)

    def inherit(self) -> None:
        """On reload, when this can't start and nobody goes back: have `stop` end what the predecessor has, too."""
        self._predecessor = None

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
            await self._leave_stores(checkpoint=bool(self._timers))  # who never started leads to no store
        finally:
            await self.close()

    async def close(self) -> None:
        """Let go of everything as it stands; what queues hold is lost, and counted so, unless it is in a store."""
        await self._leave_stores(checkpoint=False)
        groups: Sequence[dict[str, Running[Any]]] = (self.receivers, self.queues, self.exporters, self.extensions)
        for group in groups:
            await asyncio.gather(*[running.stop() for running in self._own(group).values()])
        self._metrics.hide()

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
        chains = [chain for driver in self.drivers for chain in driver.chains]
        held = [processor.held_since() for chain in chains for processor in chain.processors]
        queued = any(running.component.held() for running in self.queues.values())
        leaving = any(chain.outbox for chain in chains)
        return not queued and not leaving and all(since is None or since > arrived for since in held)

    def balances(self) -> Sequence[Balance]:
        """Return the ledger, a line an exporter."""
        durable = {pipeline.id for pipeline in self.settings.pipelines if pipeline.outlives}
        return [
            balance(
                id,
                [(d, o) for d in (*self.drivers, *self._retired) for o in d.outlets if o.exporter == id],
                queue,
                durable,
            )
            for id, queue in ((id, self.queues[id].component) for id in self.exporters)
        ]
