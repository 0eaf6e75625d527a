"""A scheduler put together for a real cluster: what the configuration asks for, on asyncio and the API server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from opentelemetry.trace import Tracer

from podtrail_scheduler.api_dispatcher.client import DispatchingClient
from podtrail_scheduler.api_dispatcher.dispatcher import APIDispatcher, DispatcherSettings
from podtrail_scheduler.api_dispatcher.reporting import PodStatusReporter, by_profile
from podtrail_scheduler.configuration.expansion import ProfileConfiguration
from podtrail_scheduler.configuration.features import (
    ASYNC_TRACE_CONTEXT_PROPAGATION,
    SCHEDULER_ASYNC_API_CALLS,
    SCHEDULER_ASYNC_PREEMPTION,
    SCHEDULER_POP_FROM_BACKOFF_Q,
    SCHEDULER_PRE_ENQUEUE_POD_STATUS,
    FeatureGates,
)
from podtrail_scheduler.configuration.generation import generation_of
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.cycles.attempt_spans import ConfigurationInForce, change_that_made
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.event_recording.broadcaster import EventBroadcaster
from podtrail_scheduler.extenders import WatchedManifests
from podtrail_scheduler.framework.aside import IN_PLACE
from podtrail_scheduler.framework.client import Client
from podtrail_scheduler.framework.extending import Extenders
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.trial import FilterTrial
from podtrail_scheduler.metrics.scheduler_metrics import SchedulerMetrics
from podtrail_scheduler.metrics.sources import expect, show
from podtrail_scheduler.objects.durations import MINUTE, SECOND
from podtrail_scheduler.plugins.registry import IN_TREE, Make, make_profile
from podtrail_scheduler.queueing.queue import SchedulingQueueSettings
from podtrail_scheduler.runtime.profile import Profile

from .clock import AsyncioClock
from .plugin_handle import handle_of_others
from .plugin_threads import PluginThreads


@dataclass(frozen=True, slots=True)
class SchedulerPlan:
    """What to schedule with. `makers` are the plugins' classes by name (`plugins.registry.available`)."""

    configuration: KubeSchedulerConfiguration
    profiles: Sequence[ProfileConfiguration]
    makers: Mapping[str, Make]
    features: FeatureGates
    extenders: Extenders | None = None
    manifests: WatchedManifests | None = None
    """Given Pods and nodes whole, for the extenders."""
    max_unschedulable: int = 5 * MINUTE
    """How long a Pod stays in the unschedulable pool if no event helps."""
    context: Mapping[str, str] = field(default_factory=dict)
    """The trace context of who wrote the configuration (KEP-5915)."""
    on_attempt: Callable[[AttemptRecord], None] = lambda _: None
    """Told of each attempt that is over."""


def assemble(
    plan: SchedulerPlan,
    clock: AsyncioClock,
    client: Client,
    tracer: Tracer | None,
    *,
    metrics: SchedulerMetrics | None = None,
    events: EventBroadcaster | None = None,
    host: str = "",
    threads: PluginThreads | None = None,
) -> Scheduler:
    """The scheduler; all profiles share cluster, queue and nominations.

    `metrics` are told of its work, and show its queue and cache; `events` go out in the name of each profile on `host`;
    plugins of others run in `threads`, by default in place.

    Raises:
        ValueError: a plugin refuses its args.
    """
    cache = Cache()
    dispatcher = _dispatcher(plan, clock, client, metrics)
    if dispatcher is not None:
        client = DispatchingClient(client, dispatcher)
    profiles = list(_profiles(plan, Handle(clock, client, cache.nodes), metrics, events, host, threads))
    scheduler = Scheduler(
        profiles,
        cache,
        tracer=tracer,
        on_attempt=plan.on_attempt,
        propagate=plan.features.enabled(ASYNC_TRACE_CONTEXT_PROPAGATION),
        settings=SchedulingQueueSettings(
            initial_backoff=plan.configuration.pod_initial_backoff_seconds * SECOND,
            max_backoff=plan.configuration.pod_max_backoff_seconds * SECOND,
            max_unschedulable=plan.max_unschedulable,
            pop_from_backoff=plan.features.enabled(SCHEDULER_POP_FROM_BACKOFF_Q),
        ),
        extenders=plan.extenders,
        seed=str(clock.now()),
        metrics=metrics,
        aside=IN_PLACE if threads is None else threads,
        configured=_configured(plan),
    )
    if dispatcher is not None:
        scheduler.dispatcher = dispatcher
        if plan.features.enabled(SCHEDULER_PRE_ENQUEUE_POD_STATUS):
            writers = {made.name: handle.event for made, handle in profiles}
            reporter = PodStatusReporter(dispatcher, by_profile(writers), scheduler.queue.report_failed)
            scheduler.queue.report_to(reporter)
    if metrics is not None:
        show(metrics, scheduler, dispatcher, events)
    return scheduler


def reassemble(
    plan: SchedulerPlan,
    scheduler: Scheduler,
    *,
    metrics: SchedulerMetrics | None = None,
    events: EventBroadcaster | None = None,
    host: str = "",
    threads: PluginThreads | None = None,
) -> None:
    """Has an assembled scheduler go on with the profiles of another plan; all else is as it was assembled with.

    Raises:
        ValueError: a plugin refuses its args; nothing has changed then.
    """
    plan = replace(plan, extenders=scheduler.handle.extenders)
    profiles = list(_profiles(plan, scheduler.handle, metrics, events, host, threads))
    if metrics is not None:
        expect(metrics, [profile for profile, _ in profiles])
    scheduler.reconfigure(profiles, _configured(plan))


def _configured(plan: SchedulerPlan) -> ConfigurationInForce:
    told = plan.context if plan.features.enabled(ASYNC_TRACE_CONTEXT_PROPAGATION) else {}
    return ConfigurationInForce(generation_of(plan.configuration), change_that_made(told))


def _profiles(
    plan: SchedulerPlan,
    shared: Handle,
    metrics: SchedulerMetrics | None,
    events: EventBroadcaster | None,
    host: str,
    threads: PluginThreads | None,
) -> Iterator[tuple[Profile, Handle]]:
    """Each profile with its handle: what the cluster is made of is `shared`, events and trials are its own."""
    for profile in plan.profiles:
        handle = replace(
            shared,
            trial=FilterTrial(),
            extenders=plan.extenders,
            async_preemption=plan.features.enabled(SCHEDULER_ASYNC_PREEMPTION),
            pre_enqueue_pod_status=plan.features.enabled(SCHEDULER_PRE_ENQUEUE_POD_STATUS),
        )
        if events is not None:
            handle.event = events.recorder(profile.scheduler_name, host)
        if metrics is not None:
            handle.measures = metrics
        others = None
        if threads is not None and any(plan.makers[name] is not IN_TREE.get(name) for name in profile.plugins):
            others = handle_of_others(handle, threads)
        made = make_profile(handle, profile, plan.makers, others)
        if metrics is not None:
            made.hints = metrics.timed(made.hints, shared.clock.now)
        yield made, handle


def _dispatcher(
    plan: SchedulerPlan, clock: AsyncioClock, client: Client, metrics: SchedulerMetrics | None
) -> APIDispatcher | None:
    """The dispatcher that SchedulerAsyncAPICalls asks for; status patches have the rate of a client of their own."""
    if not plan.features.enabled(SCHEDULER_ASYNC_API_CALLS):
        return None
    connection = plan.configuration.client_connection
    settings = DispatcherSettings(plan.configuration.parallelism, connection.qps, connection.burst)
    return APIDispatcher(client, clock, settings, metrics)
