"""A scheduler put together for a real cluster: what the configuration asks for, on asyncio and the API server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.trace import Tracer

from podtrail_scheduler.attempt import AttemptRecord
from podtrail_scheduler.cache import Cache
from podtrail_scheduler.client import Client
from podtrail_scheduler.configuration.expansion import ProfileConfiguration
from podtrail_scheduler.configuration.features import SCHEDULER_POP_FROM_BACKOFF_Q, FeatureGates
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration
from podtrail_scheduler.durations import MINUTE, SECOND
from podtrail_scheduler.extenders import WatchedManifests
from podtrail_scheduler.framework.extending import Extenders
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.nominator import Nominator
from podtrail_scheduler.plugins.registry import Make, make_profile
from podtrail_scheduler.queueing.queue import QueueSettings
from podtrail_scheduler.scheduler import Scheduler

from .clock import AsyncioClock


@dataclass(frozen=True, slots=True)
class Plan:
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
    on_attempt: Callable[[AttemptRecord], None] = lambda _: None
    """Told of each attempt that is over."""


def assemble(plan: Plan, clock: AsyncioClock, client: Client, tracer: Tracer | None) -> Scheduler:
    """The scheduler; all profiles share cluster, queue and nominations. ValueError when a plugin refuses its args."""
    cache, listers, nominator = Cache(), Listers(), Nominator()
    waiting: dict[str, WaitingPod] = {}
    profiles = []
    for profile in plan.profiles:
        handle = Handle(clock, client, cache.nodes, listers=listers, nominator=nominator, waiting=waiting)
        profiles.append((make_profile(handle, profile, plan.makers), handle))
    return Scheduler(
        profiles,
        cache,
        tracer=tracer,
        on_attempt=plan.on_attempt,
        settings=QueueSettings(
            initial_backoff=plan.configuration.pod_initial_backoff_seconds * SECOND,
            max_backoff=plan.configuration.pod_max_backoff_seconds * SECOND,
            max_unschedulable=plan.max_unschedulable,
            pop_from_backoff=plan.features.enabled(SCHEDULER_POP_FROM_BACKOFF_Q),
        ),
        extenders=plan.extenders,
        seed=str(clock.now()),
    )
