"""The root span of an attempt (KEP-5927): from the queue until the Pod is bound, or is not; utiltrace's beside it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opentelemetry.trace import Link, Tracer, get_current_span
from podtrail_instrumentation import Clock, Log, PropagationCounters, Span, extract_context, start_reconcile_span
from podtrail_instrumentation.reconcile import LINK_SOURCE, LINK_TRUSTED

from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import MILLISECOND

from .attempt import AttemptFailure, RunningAttempt

LONG_CYCLE = 100 * MILLISECOND
"""From how many nanoseconds of its scheduling cycle on an attempt is logged with its phases and plugins, how
long it then took to bind is no reason. A search for a node of that length is logged with its steps."""


class NodeSearch:
    """The search for a node, as kube-scheduler's log tells it when it took long; the trace has the attempt's spans.

    Hardly any takes long: until one has, there are only times.
    """

    __slots__ = ("_began", "_clock", "_steps")

    def __init__(self, now: Clock) -> None:
        self._clock = now
        self._began = now()
        self._steps: list[tuple[str, int]] = []

    def step(self, name: str) -> None:
        """So far is the search: `Computing predicates done`, `Prioritizing done`."""
        self._steps.append((name, self._clock()))

    def end(self, pod: Pod, log: Log) -> None:
        """Ends the search, and logs its steps when it took long."""
        ended = self._clock()
        if ended - self._began < LONG_CYCLE:
            return
        span = Span("Scheduling", {"namespace": pod.namespace, "name": pod.name}, self._clock, log, self._began)
        for name, at in self._steps:
            span.add_event(name, at=at)
        span.end(LONG_CYCLE, ended)


class ConfigurationInForce(NamedTuple):
    """What attempts tell of the configuration that they are made with."""

    generation: str = ""
    """Of `configuration.generation`; empty where nobody asks."""
    links: Sequence[Link] = ()
    """To the change that made it."""


def change_that_made(context: Mapping[str, str]) -> Sequence[Link]:
    """The link to the span that a configuration names, by KEP-5915's annotation keys; none when it names none."""
    change = get_current_span(extract_context(context)).get_span_context()
    # Whoever may write the configuration chose it.
    told: dict[str, str | bool] = {
        "podtrail.link.type": "configuration",
        LINK_SOURCE: "configuration",
        LINK_TRUSTED: False,
    }
    return (Link(change, told),) if change.is_valid else ()


def start_root(
    entry: QueuedPod,
    tracer: Tracer | None,
    now: Clock,
    counters: PropagationCounters | None,
    log: Log,
    configured: ConfigurationInForce,
) -> Span:
    """Starts `SchedulePod`; a link to the Pod's creation, if it names one, needs `counters` (KEP-5915)."""
    pod = entry.pod
    attributes: dict[str, str | int] = {
        "k8s.pod.name": pod.name,
        "k8s.pod.namespace": pod.namespace,
        "k8s.namespace.name": pod.namespace,
        "k8s.pod.uid": pod.uid,
        "scheduler.queue_wait_ms": (now() - entry.active_since) // MILLISECOND,
        "scheduler.profile": pod.scheduler_name,
        "scheduler.attempts": entry.attempts,
    }
    if configured.generation:
        attributes["scheduler.config.generation"] = configured.generation
    return start_reconcile_span(
        "SchedulePod",
        pod.annotations if counters is not None else {},
        tracer=tracer,
        clock=now,
        attributes=attributes,
        links=configured.links,
        counters=counters,
        log=log,
    )


def end_root(attempt: RunningAttempt, failure: AttemptFailure | None) -> None:
    """Ends the root span with the result of the attempt: None is a bound Pod."""
    root = attempt.root
    if root.recording:
        told = {"scheduler.result": failure.result if failure is not None else "Success"}
        if failure is None:
            told["scheduler.selected_node"] = attempt.node
        else:
            root.fail(failure.message)
            if failure.nominated_node:
                told["scheduler.nominated_node"] = failure.nominated_node
        root.set_attributes(told)
    root.end(LONG_CYCLE if attempt.cycle_took >= LONG_CYCLE else None)
