"""Metrics that are read where their values are kept: queue, cache, dispatcher, and the counters of tracing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.event_recording.broadcaster import EventBroadcaster
from podtrail_scheduler.queueing.queue import SchedulingQueue
from podtrail_scheduler.runtime.profile import Profile

from . import definitions as defined
from .families import ReadVec, Values
from .scheduler_metrics import SchedulerMetrics

Samples = Iterable[tuple[str, Mapping[str, str], float]]
"""Name, labels and value."""

_GROUPS = {"incomplete": 0, "pending": 0}
"""The queues of Pods of pod groups, which are not scheduled here."""


class Pending(Protocol):
    """Calls that wait, by type."""

    def pending(self) -> Mapping[str, int]:
        """How many of each type."""
        ...


def of_queue(queue: SchedulingQueue) -> list[ReadVec]:
    """Pods by queue, arrivals in each queue by event, Pods that each plugin refuses, events kept for Pods in flight."""
    return [
        defined.PENDING_PODS.of(lambda: {(name,): number for name, number in {**_GROUPS, **queue.lengths()}.items()}),
        defined.QUEUED_ENTITIES.of(lambda: {(name, "pod"): number for name, number in queue.lengths().items()}),
        defined.INFLIGHT_EVENTS.of(lambda: {(label,): number for label, number in queue.in_flight_events.items()}),
        defined.QUEUE_INCOMING_PODS.of(lambda: queue.counts.incoming),
        defined.QUEUE_INCOMING_ENTITIES.of(lambda: queue.counts.incoming_entities),
        defined.UNSCHEDULABLE_PODS.of(lambda: queue.counts.rejections),
    ]


def of_cache(sizes: Callable[[], Mapping[str, int]]) -> list[ReadVec]:
    """How many `nodes`, `pods` and `assumed_pods` the cache has."""
    return [defined.CACHE_SIZE.of(lambda: {(kind,): number for kind, number in sizes().items()})]


def of_dispatcher(dispatcher: Pending) -> list[ReadVec]:
    """How many API calls wait in the dispatcher, by type."""
    return [
        defined.PENDING_ASYNC_API_CALLS.of(lambda: {(kind,): number for kind, number in dispatcher.pending().items()})
    ]


def of_tracing(samples: Callable[[], Samples]) -> list[ReadVec]:
    """The counters of exported spans and of annotations, from what the instrumentation counts."""

    def read(definition: defined.Definition) -> Callable[[], dict[Values, float]]:
        def values() -> dict[Values, float]:
            found: dict[Values, float] = {}
            for name, labels, value in samples():
                if name == definition.name:
                    key = tuple(labels[label] for label in definition.labels)
                    found[key] = found.get(key, 0) + value
            return found

        return values

    kinds = (
        defined.TRACING_SPANS_EXPORTED,
        defined.TRACING_SPANS_DROPPED,
        defined.ANNOTATIONS_INJECTED,
        defined.ANNOTATIONS_EXTRACTED,
    )
    return [kind.of(read(kind)) for kind in kinds]


def of_events(dropped: Callable[[], Mapping[str, int]]) -> list[ReadVec]:
    """Events that were not written, by reason."""
    return [defined.EVENTS_DROPPED.of(lambda: {(reason,): number for reason, number in dropped().items()})]


def of_reloads(samples: Callable[[], Samples]) -> list[ReadVec]:
    """How many configurations were taken up by a scheduler that ran, and were not."""
    return [defined.CONFIG_RELOADS.of(lambda: {(labels["result"],): value for _, labels, value in samples()})]


def expect(metrics: SchedulerMetrics, profiles: Iterable[Profile]) -> None:
    """Has the plugins of profiles stand in metrics from the start."""
    for profile in profiles:
        metrics.expect((each.name for each in profile.pre_filter), "PreFilter", profile.name)
        metrics.expect((each.name for each in profile.filter), "Filter", profile.name)
        metrics.expect((each.name for each in profile.pre_score), "PreScore", profile.name)
        metrics.expect((each.name for each in profile.score), "Score", profile.name)


def show(
    metrics: SchedulerMetrics, scheduler: Scheduler, dispatcher: Pending | None, events: EventBroadcaster | None
) -> None:
    """Exposes what a scheduler and what works for it keep, and has the rest of its work measured."""
    now = scheduler.handle.clock.now
    metrics.include(
        *of_queue(scheduler.queue),
        *of_cache(scheduler.cache.sizes),
        *(of_dispatcher(dispatcher) if dispatcher is not None else ()),
        *(of_events(lambda: events.dropped) if events is not None else ()),
    )
    expect(metrics, scheduler.profiles.values())
    scheduler.queue.measure(metrics, now)
    scheduler.on_handled = metrics.event_handled
