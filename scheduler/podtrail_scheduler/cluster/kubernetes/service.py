"""The scheduler as it runs beside others on a real cluster: connected, watching, elected, served, and ended in time."""

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import TracerProvider, set_tracer_provider
from podtrail_instrumentation import SpanCounters, TracingConfiguration, shutdown, tracer_provider
from podtrail_kubernetes.leader_election import ElectionTiming, LeaderElector, LeaseLock
from podtrail_kubernetes.rate_limiter import RateLimiter
from podtrail_kubernetes.rest_client import RestClient, user_agent

from podtrail_scheduler.configuration.features import SCHEDULER_ASYNC_API_CALLS, SCHEDULER_TRACING
from podtrail_scheduler.configuration.types import LeaderElectionConfiguration
from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.event_recording.broadcaster import EventBroadcaster
from podtrail_scheduler.metrics.scheduler_metrics import SchedulerMetrics
from podtrail_scheduler.metrics.sources import of_reloads, of_tracing
from podtrail_scheduler.objects.durations import SECOND

from .api_client import ApiClient, ApiEventSink
from .assembly import SchedulerPlan, assemble, reassemble
from .clock import AsyncioClock
from .informers import Informers
from .plugin_threads import PluginThreads
from .reconfiguration import Offered, Reconfiguration
from .serving import Check, Serving, served

PROGRAM = "podtrail-scheduler"
SCOPE = "podtrail_scheduler"

LAST_SPANS = 0.75
"""Seconds that the last spans have to leave when the service ends."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """A whole service: what to schedule with, where the cluster is, where to listen."""

    plan: SchedulerPlan
    version: str
    kubeconfig: Path | None = None
    """None: `clientConnection.kubeconfig`, else the ServiceAccount of the Pod that it runs in."""
    master: str | None = None
    serving: Serving = field(default_factory=Serving)
    offered: AsyncIterator[Offered] | None = None
    """Configurations that are to take the place of the plan's, as they come."""
    tracer_provider: TracerProvider | None = None
    """Takes the place of the one that `tracing` describes."""
    owns_process: bool = False
    """Whether the provider becomes OpenTelemetry's global one, so that what plugins trace joins their attempts."""


async def run(
    settings: SchedulerSettings, stop: asyncio.Event, started: Callable[[int], None] = lambda _: None
) -> None:
    """Schedules until `stop` is set, and ends within two seconds then; `started` is told the port that is served.

    Raises:
        RestConfigError: at the start, when the API server can't be known.
        OSError: at the start, when the port can't be had.
        LeadershipLost: another may lead; the process must end.
        RuntimeError: it ended by itself.
    """
    service = asyncio.create_task(_Service(settings).run(started))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((service, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        service.cancel()
        await asyncio.wait((service, stopped))
    if not service.cancelled():
        service.result()
        if not stop.is_set():
            raise RuntimeError("the scheduler ended by itself")


class _Service:
    def __init__(self, settings: SchedulerSettings) -> None:
        self._settings = settings
        self._configuration = settings.plan.configuration
        self._clock = AsyncioClock()
        self._rng = random.Random()  # noqa: S311, jitter
        self._spans = SpanCounters()
        self._tracing_ends: asyncio.Task[None] | None = None
        self._host = socket.gethostname()
        self._identity = f"{self._host}_{uuid.uuid4()}"

    async def run(self, started: Callable[[int], None]) -> None:
        client = self._configuration.client_connection
        async with AsyncExitStack() as stack:
            provider = self._tracing()
            stack.push_async_callback(self._end_tracing, provider)
            if provider is not None and self._settings.owns_process:
                set_tracer_provider(provider)
            limiter = RateLimiter(client.qps, client.burst)
            rest = await stack.enter_async_context(self._connected("scheduler", limiter))
            informers = Informers(rest, self._rng, self._settings.plan.manifests)
            election = await self._election(stack)
            api = ApiClient(
                rest,
                informers.pod,
                self._clock.now,
                RateLimiter(client.qps, client.burst),
                (lambda: True) if election is None else lambda: election.leading,
            )
            tracer = provider.get_tracer(SCOPE) if provider is not None else None
            sink = ApiEventSink(
                rest,
                RateLimiter(client.qps, client.burst),
                (lambda: True) if election is None else lambda: election.may_report,
            )
            events = EventBroadcaster(sink, self._clock)
            threads = PluginThreads()
            stack.callback(threads.close)
            features = self._settings.plan.features
            metrics = SchedulerMetrics(async_api_calls=features.enabled(SCHEDULER_ASYNC_API_CALLS))
            scheduler = assemble(
                self._settings.plan,
                self._clock,
                api,
                tracer,
                metrics=metrics,
                events=events,
                host=self._host,
                threads=threads,
            )
            metrics.include(*of_tracing(lambda: self._counted(scheduler)))
            go_on_with = partial(
                reassemble, scheduler=scheduler, metrics=metrics, events=events, host=self._host, threads=threads
            )
            reconfiguration = Reconfiguration(self._settings.plan, go_on_with)
            metrics.include(*of_reloads(reconfiguration.samples))
            if self._settings.offered is not None:
                self._clock.spawn(reconfiguration.follow(self._settings.offered))
            stack.push_async_callback(self._clock.stop)
            live: Mapping[str, Check] = {"ping": lambda: ""}
            ready: Mapping[str, Check] = {"informer-sync": lambda: "" if informers.synced else "not all listed yet"}
            port = await stack.enter_async_context(served(self._settings.serving, live, ready, metrics.exposition))
            started(port)
            try:
                await self._schedule(scheduler, informers, election, rest)
            finally:
                # The last spans leave while connections are closed: neither waits for the other.
                self._tracing_ends = asyncio.create_task(self._end_tracing(provider))

    def _counted(self, scheduler: Scheduler) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """What tracing counts: exported spans, and context in annotations."""
        if self._settings.plan.features.enabled(SCHEDULER_TRACING):
            yield from self._spans.samples()
        for counters in scheduler.propagation.values():
            yield from counters.samples()

    async def _schedule(
        self, scheduler: Scheduler, informers: Informers, election: LeaderElector | None, rest: RestClient
    ) -> None:
        delayed = election is not None and self._configuration.delay_cache_until_active
        active = asyncio.Event()

        async def watch() -> None:
            if delayed:
                await active.wait()
            await informers.run(scheduler)

        async def lead() -> None:
            active.set()
            await informers.wait_for_sync()
            _log.info("Caches are synced, scheduling begins")
            if scheduler.dispatcher is not None:
                scheduler.dispatcher.start()
            await scheduler.run()

        watching = asyncio.create_task(watch())
        working = asyncio.create_task(lead() if election is None else election.lead(lead))
        try:
            await asyncio.wait((watching, working), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # What binds stops, and is answered, before the Lease is given back.
            await self._clock.stop()
            await rest.drain()
            for task in (watching, working):
                task.cancel()
            await asyncio.wait((watching, working))
        for task in (watching, working):
            if not task.cancelled():
                task.result()

    def _tracing(self) -> TracerProvider | None:
        """The tracer provider, None with the gate off."""
        if not self._settings.plan.features.enabled(SCHEDULER_TRACING):
            return None
        if self._settings.tracer_provider is not None:
            return self._settings.tracer_provider
        asked = self._configuration.tracing
        tracing = None
        if asked is not None:
            tracing = TracingConfiguration(
                endpoint=asked.endpoint, sampling_rate_per_million=asked.sampling_rate_per_million
            )
        resource = Resource(
            {
                "service.name": PROGRAM,
                "service.version": self._settings.version,
                "service.instance.id": self._identity,
                "host.name": self._host,
            }
        )
        return tracer_provider(tracing, resource, self._spans, shutdown_timeout=LAST_SPANS)

    async def _end_tracing(self, provider: TracerProvider | None) -> None:
        if self._tracing_ends is not None and self._tracing_ends is not asyncio.current_task():
            await self._tracing_ends
        elif provider is not None and provider is not self._settings.tracer_provider:
            await asyncio.to_thread(shutdown, provider)

    @asynccontextmanager
    async def _connected(self, part: str, limiter: RateLimiter | None) -> AsyncIterator[RestClient]:
        kubeconfig = self._settings.kubeconfig
        if kubeconfig is None and self._configuration.client_connection.kubeconfig:
            kubeconfig = Path(self._configuration.client_connection.kubeconfig)
        agent = user_agent(PROGRAM, self._settings.version, part)
        rest = await RestClient.open(kubeconfig, self._settings.master, agent=agent, limiter=limiter)
        try:
            yield rest
        finally:
            await rest.close()

    async def _election(self, stack: AsyncExitStack) -> LeaderElector | None:
        asked = self._configuration.leader_election
        if not asked.leader_elect:
            return None
        # Of its own, so that no throttle of the scheduler's holds up a renewal.
        rest = await stack.enter_async_context(self._connected("leader-election", None))
        store = LeaseLock(rest, asked.resource_namespace, asked.resource_name)
        return LeaderElector(store, self._identity, self._rng, timing=_timing(asked))


def _timing(asked: LeaderElectionConfiguration) -> ElectionTiming:
    return ElectionTiming(asked.lease_duration / SECOND, asked.renew_deadline / SECOND, asked.retry_period / SECOND)
