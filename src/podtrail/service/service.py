"""A running podtrail: one graph at a time, signals, reload, own metrics."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from podtrail.component import BatchObserver, Metrics, ServesPage, StartError
from podtrail.component.container import container_limit
from podtrail.component.own_spans import own_span
from podtrail.config import ConfigError
from podtrail.durable.store import DurableStore
from podtrail.otlp import native
from podtrail.partitioned.consumer import ReceiverPartitions
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.graph import Graph
from podtrail.pipeline.host import Host
from podtrail.pipeline.ledger import Balance
from podtrail.pipeline.memory_budget import excess, memory_budget
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.service.ledger import Auditor, equation, publish_ledger
from podtrail.service.log_ring import LogRing
from podtrail.service.logs import LoopErrors, configure_logs
from podtrail.service.own_traces import OwnTraces
from podtrail.service.process import (
    ResidentMemory,
    allow_many_files,
    publish,
    settle_allocator,
    settle_garbage_collector,
)
from podtrail.service.support import SupportFacts

SHUTDOWN_SECONDS = 10.0
"""For deciding and delivering what is inside when podtrail is told to stop; what remains then is counted as lost."""

_SETTLE_SECONDS = 0.05
_AUDIT_SECONDS = 1.0
_SILENT_SECONDS = 1.0
"""How long a stop may take until it says what it waits for."""
_START_AGAIN_SECONDS = 1.0
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
        self._ring = LogRing()
        self._support = SupportFacts(self._running_settings, self.metrics, self.balances, self._ring)
        self._own_traces = OwnTraces(settings.service.telemetry, _LOG)
        self._host = Host(
            metrics=self.metrics,
            gates=gates,
            memory_used=memory,
            reclaim_memory=memory.reclaim,
            stopwatch=time.perf_counter_ns,
            support_files=self._support.files,
            tracer=self._own_traces.tracer,
        )
        self._clock = PipelineClock()
        self._signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._told_to_stop: float | None = None
        """When the first signal to stop came, in the loop's time."""
        self._why_stop = ""
        """What `stop` was told; "" where a signal came."""
        self._graph: Graph | None = None
        self._auditor = Auditor(_LOG)
        self._before_swap: Sequence[Balance] | None = None
        """The ledger as it stood, while graphs are swapped: spans are on their way from one to the other."""
        publish(self.metrics, memory)
        publish_ledger(self.metrics, self.balances)

    def _wired(self, settings: Settings, predecessor: Graph | None) -> Graph:
        budget = memory_budget(settings, container_limit())
        if warning := excess(settings, budget):
            _LOG.warning(warning)
        return Graph(
            settings,
            replace(self._host, memory_budget=budget),
            self._clock,
            observers=self._observers,
            predecessor=predecessor,
            make_store=partial(DurableStore, tracer=self._host.tracer),
            make_partitions=ReceiverPartitions,
        )

    def _running_settings(self) -> Settings:
        return self._graph.settings if self._graph else self._settings

    def balances(self) -> Sequence[Balance]:
        """Return the ledger as it stands, or stood before a reload that is under way."""
        if self._before_swap is not None:
            return self._before_swap
        return self._graph.balances() if self._graph else ()

    def page(self) -> str:
        """Return the address of the page as it was bound, "" where there is none."""
        running = self._graph.extensions.values() if self._graph else ()
        return next((one.component.page for one in running if isinstance(one.component, ServesPage)), "")

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
            stack.enter_context(self._ring.listening())
            if telemetry.metrics.address is not None:
                from podtrail.service.telemetry import MetricsServer

                await stack.enter_async_context(MetricsServer(self.metrics, *telemetry.metrics.address))
            stack.push_async_callback(self._own_traces.close)
            self._graph = self._wired(settings, None)
            await self._graph.start()
            settle_garbage_collector()
            settle_allocator()
            _LOG.info("ready: %s", _described(settings))
            _LOG.info("native: %s", native.RUNS)
            at_once = False
            try:
                exhausted = await self._serve(exit_when_done, when_done)
            finally:
                at_once = await self._stop()
                self._auditor.look(self._graph.balances(), at_last=True)
                for balance in self._graph.balances():
                    _LOG.info("stopped: %s: %s", balance.exporter, equation(balance, ended=True))
            return ServiceEnd(self._graph.balances(), exhausted, at_once)

    def stop(self, why: str) -> None:
        """Stop as at SIGTERM, unless told to already. To be called in the event loop, while `run` is under way."""
        if self._told_to_stop is None:
            self._why_stop = why
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
                        _LOG.info("%s: stopping", self._why_stop or number.name)
                        return exhausted
                    told = asyncio.create_task(self._signals.get())
                    if self._told_to_stop is not None:  # what was asked for first is of no use any more
                        continue
                    self._before_swap = self._graph.balances()
                    with own_span(self._host.tracer, "reload") as span:
                        reloaded = await self._reload()
                        if span is not None:
                            span.set_attribute("reloaded", reloaded)
                    self._before_swap = None
                    if reloaded:
                        if work:
                            work.cancel()
                        exhausted = False
                        work = asyncio.create_task(self._graph.run(finite_only=True))
                        settle_garbage_collector()
        finally:
            told.cancel()
            audit.cancel()
            if work:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _audit(self) -> None:
        """Look at the ledger every second."""
        while True:
            await asyncio.sleep(_AUDIT_SECONDS)
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
            await self._go_back(before.settings, graph)
            return True
        logs = settings.service.telemetry.logs
        configure_logs(logs.level, logs.encoding)
        if settings.service.telemetry.metrics != before.settings.service.telemetry.metrics:
            _LOG.warning("SIGHUP: service::telemetry::metrics takes effect at the next start")
        if settings.service.telemetry.traces != before.settings.service.telemetry.traces:
            _LOG.warning("SIGHUP: service::telemetry::traces takes effect at the next start")
        _LOG.info("SIGHUP: reloaded: %s", _described(settings))
        return True

    async def _go_back(self, settings: Settings, graph: Graph) -> None:
        """Start what ran before: what keeps it from starting now, such as a disk that fails, may pass.

        Raises:
            StartError: it can't, and podtrail was told to stop meanwhile.
        """
        said = ""
        while True:
            self._graph = graph = self._wired(settings, graph)
            graph.take_over()
            try:
                await graph.start()
            except StartError as error:
                if self._told_to_stop is not None:
                    graph.inherit()
                    raise
                if str(error) != said:
                    said = str(error)
                    _LOG.error("SIGHUP: the old configuration can't start either, senders wait meanwhile: %s", error)
                await asyncio.sleep(_START_AGAIN_SECONDS)
            else:
                _LOG.info("SIGHUP: the old configuration runs on")
                return

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
        silent: float | None = _SILENT_SECONDS
        try:
            while not stop.done():
                done, _ = await asyncio.wait([stop, told], timeout=silent, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    silent = None
                    self._say_what_waits(until=None if told_to is None else SHUTDOWN_SECONDS - waited)
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

    def _say_what_waits(self, until: float | None) -> None:
        """Say why it has not ended yet; `until`: after how many seconds it does at any rate."""
        inside = [(each.exporter, each.in_memory + each.in_queue) for each in self.balances()]
        waits = ", ".join(f"{spans} spans for {exporter}" for exporter, spans in inside if spans)
        most = "until that is delivered" if until is None else f"at most {until:.0f} s in all"
        _LOG.info("stopping: %s; waiting %s, another signal ends it at once", waits or "components take long", most)


def _described(settings: Settings) -> str:
    def way(pipeline: PipelineSettings) -> str:
        stages = (", ".join(pipeline.receivers), *pipeline.processors, ", ".join(pipeline.exporters))
        return f"{pipeline.id}: {' -> '.join(stages)}"

    return "; ".join(map(way, settings.pipelines))
