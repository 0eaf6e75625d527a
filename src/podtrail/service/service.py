"""A running podtrail: one graph at a time, signals, reload, own metrics."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from podtrail.component import BatchObserver, Metrics, StartError
from podtrail.config import ConfigError
from podtrail.durable.store import DurableStore
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.graph import Graph
from podtrail.pipeline.host import Host
from podtrail.pipeline.ledger import Balance
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.service.ledger import Auditor, equation, publish_ledger
from podtrail.service.logs import LoopErrors, configure_logs
from podtrail.service.process import (
    ResidentMemory,
    allow_many_files,
    publish,
    settle_allocator,
    settle_garbage_collector,
)

SHUTDOWN_SECONDS = 10.0
"""For deciding and delivering what is inside when podtrail is told to stop; what remains then is counted as lost."""

_SETTLE_SECONDS = 0.05
_AUDIT_SECONDS = 1.0
_LOG = logging.getLogger("podtrail")


@dataclass(frozen=True, slots=True)
class ServiceEnd:
    """How a run ended."""

    balances: Sequence[Balance]
    exhausted: bool
    """Whether all finite sources were exhausted; otherwise a signal ended it."""
    at_once: bool
    """Whether a second signal cut the shutdown short: what `balances` shows in memory and in queues is lost."""


class Service:
    """Runs `settings` until it is told to stop, or until its sources are exhausted.

    `read` gives the settings anew at each SIGHUP.
    """

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings],
        gates: frozenset[str] = frozenset(),
        observers: Sequence[BatchObserver] = (),
    ) -> None:
        self._settings = settings
        self._read = read
        self._observers = observers
        memory = ResidentMemory()
        self.metrics = Metrics()
        self._host = Host(
            metrics=self.metrics,
            gates=gates,
            memory_used=memory,
            reclaim_memory=memory.reclaim,
            stopwatch=time.perf_counter_ns,
        )
        self._clock = PipelineClock()
        self._signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._told_to_stop: float | None = None
        """When the first signal to stop came, in the loop's time."""
        self._graph: Graph | None = None
        self._auditor = Auditor(_LOG)
        self._reloading = False
        publish(self.metrics, memory)
        publish_ledger(self.metrics, self.balances)

    def _wired(self, settings: Settings, predecessor: Graph | None) -> Graph:
        return Graph(
            settings,
            self._host,
            self._clock,
            observers=self._observers,
            predecessor=predecessor,
            make_store=DurableStore,
        )

    def balances(self) -> Sequence[Balance]:
        """Return the ledger as it stands."""
        return self._graph.balances() if self._graph else ()

    async def run(self, *, exit_when_done: bool = False, when_done: Callable[[], None] | None = None) -> ServiceEnd:
        """Run; return when all is stopped.

        Args:
            exit_when_done: end when every finite source is exhausted and all is decided and delivered.
            when_done: called once, when that is so and the service goes on.

        Raises:
            StartError: a component can't start.
        """
        settings = self._settings
        allow_many_files()
        telemetry = settings.service.telemetry
        configure_logs(telemetry.logs.level, telemetry.logs.encoding)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(LoopErrors(_LOG))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._tell, number)
        async with AsyncExitStack() as stack:
            if telemetry.metrics.address is not None:
                from podtrail.service.telemetry import MetricsServer

                await stack.enter_async_context(MetricsServer(self.metrics, *telemetry.metrics.address))
            self._graph = self._wired(settings, None)
            await self._graph.start()
            settle_garbage_collector()
            settle_allocator()
            _LOG.info("ready: %s", _described(settings))
            at_once = False
            try:
                exhausted = await self._serve(exit_when_done, when_done)
            finally:
                at_once = await self._stop()
                self._auditor.look(self._graph.balances(), at_last=True)
                for balance in self._graph.balances():
                    _LOG.info("stopped: %s: %s", balance.exporter, equation(balance))
            return ServiceEnd(self._graph.balances(), exhausted, at_once)

    def stop(self) -> None:
        """Stop as at SIGTERM. To be called in the event loop, while `run` is under way."""
        self._tell(signal.SIGTERM)

    def _tell(self, number: signal.Signals) -> None:
        if number != signal.SIGHUP and self._told_to_stop is None:
            self._told_to_stop = asyncio.get_running_loop().time()
        self._signals.put_nowait(number)

    async def _serve(self, exit_when_done: bool, when_done: Callable[[], None] | None) -> bool:
        assert self._graph is not None
        exhausted = False
        told = asyncio.create_task(self._signals.get())
        work: asyncio.Task[None] | None = asyncio.create_task(self._graph.run(finite_only=True))
        audit = asyncio.create_task(self._audit())
        try:
            while True:
                await asyncio.wait([task for task in (told, work) if task], return_when=asyncio.FIRST_COMPLETED)
                if work and work.done():
                    work.result()
                    work = None
                    if not exhausted:
                        exhausted = True
                        if exit_when_done:
                            return True
                        work = asyncio.create_task(self._go_on(when_done))
                if told.done():
                    number = told.result()
                    if number != signal.SIGHUP:
                        _LOG.info("%s: stopping", number.name)
                        return exhausted
                    told = asyncio.create_task(self._signals.get())
                    if self._told_to_stop is not None:  # what was asked for first is of no use any more
                        continue
                    self._reloading = True
                    reloaded = await self._reload()
                    self._reloading = False
                    if reloaded:
                        if work:
                            work.cancel()
                        exhausted = False
                        work = asyncio.create_task(self._graph.run(finite_only=True))
        finally:
            told.cancel()
            audit.cancel()
            if work:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _audit(self) -> None:
        """Look at the ledger every second; while graphs are swapped spans are on their way from one to the other."""
        while True:
            await asyncio.sleep(_AUDIT_SECONDS)
            if not self._reloading:
                self._auditor.look(self.balances())

    async def _go_on(self, when_done: Callable[[], None] | None) -> None:
        """The finite sources are exhausted: wait until what they brought is decided and delivered, then serve on."""
        assert self._graph is not None
        rest = asyncio.create_task(self._graph.run())
        try:
            now = self._clock.now()
            while not self._graph.settled(now):
                if rest.done():
                    rest.result()
                await asyncio.sleep(_SETTLE_SECONDS)
            if when_done:
                when_done()
            await rest
        finally:
            rest.cancel()

    async def _reload(self) -> bool:
        """Validate what is configured now and swap to it; what can't be used leaves everything as it is."""
        assert self._graph is not None
        try:
            settings = self._read()
            graph = self._wired(settings, self._graph)
        except (ConfigError, StartError) as error:
            _LOG.error("SIGHUP: nothing changed, the new configuration can't be used:\n%s", error)
            return False
        before = self._graph
        _LOG.info("SIGHUP: the new configuration is right, swapping")
        await before.stop_receiving(graph)
        graph.take_over()
        await before.stop(SHUTDOWN_SECONDS)
        self._graph = graph
        try:
            await graph.start()
        except StartError as error:
            _LOG.error("SIGHUP: the new configuration can't start, going back: %s", error)
            self._graph = self._wired(before.settings, graph)
            self._graph.take_over()
            await self._graph.start()
            return True
        logs = settings.service.telemetry.logs
        configure_logs(logs.level, logs.encoding)
        if settings.service.telemetry.metrics != before.settings.service.telemetry.metrics:
            _LOG.warning("SIGHUP: service::telemetry::metrics takes effect at the next start")
        _LOG.info("SIGHUP: reloaded: %s", _described(settings))
        return True

    async def _stop(self) -> bool:
        """Shut down; return whether a further signal cut it short."""
        assert self._graph is not None
        now = asyncio.get_running_loop().time()
        # A signal that came during a reload has waited: the time to stop counts from when it came.
        told_to = self._told_to_stop
        waited = 0.0 if told_to is None else now - told_to
        # Who ends because all is done is not in a hurry: a backend that takes its time gets everything.
        stop = asyncio.create_task(self._graph.stop(max(0.0, SHUTDOWN_SECONDS - waited), patient=told_to is None))
        told = asyncio.create_task(self._signals.get())
        try:
            while not stop.done():
                await asyncio.wait([stop, told], return_when=asyncio.FIRST_COMPLETED)
                if told.done() and not stop.done():
                    if told.result() != signal.SIGHUP:
                        stop.cancel()
                        await asyncio.gather(stop, return_exceptions=True)
                        await self._graph.close()
                        return True
                    told = asyncio.create_task(self._signals.get())
            stop.result()
        finally:
            told.cancel()
        return False


def _described(settings: Settings) -> str:
    def way(pipeline: PipelineSettings) -> str:
        stages = (", ".join(pipeline.receivers), *pipeline.processors, ", ".join(pipeline.exporters))
        return f"{pipeline.id}: {' -> '.join(stages)}"

    return "; ".join(map(way, settings.pipelines))
