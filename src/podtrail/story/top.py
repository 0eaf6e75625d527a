"""What goes on now, as `podtrail top` shows it: attempts, who waits, slow plugins, refusals, policies, the pipeline."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.library import Library
from podtrail.story.pending_question import WaitingPods, waiting_pods
from podtrail.story.pod import PodStory
from podtrail.story.pod_state import POD_STATES
from podtrail.story.policies import SamplerView
from podtrail.story.refusal_index import refusals_of
from podtrail.story.slow_since import median

_SECOND = 1_000_000_000
WINDOW = 60 * _SECOND
"""Nanoseconds that count as now."""
_MOMENT = 10 * _SECOND
_LATEST = 200
_MOST = 50


class ExporterNow(NamedTuple):
    """One exporter's part of the ledger, in spans, and its queue."""

    exporter: str
    received: int
    created: int
    delivered: int
    sampled_out: int
    rejected: int
    dropped: int
    in_memory: int
    in_queue: int
    missing: int
    """What the equation lacks; 0 in a sound pipeline."""
    queue_size: float | None
    """In the unit of its sizer."""
    queue_capacity: float | None


class PipelineNow(NamedTuple):
    """What podtrail's own metrics tell."""

    exporters: tuple[ExporterNow, ...] = ()
    dropped: Mapping[str, int] = {}
    """Spans lost, by reason, of the exporter that lost most."""
    undecided: int | None = None
    """Traces that wait for their decision; None without a sampler."""
    memory_bytes: int | None = None
    uptime_seconds: float | None = None
    oldest_undecided_seconds: float | None = None
    """Of a Kafka receiver: how far its partitions are behind."""


class PluginNow(NamedTuple):
    """A plugin at an extension point, as the spans that were kept tell. Lengths of time are nanoseconds."""

    plugin: str
    point: str
    attempts: int
    """That called it; of the latest 500 at most."""
    median: int
    longest: int


class RefusalNow(NamedTuple):
    """What a plugin refused."""

    plugin: str
    reason: str
    attempts: int
    pods: int


class PolicyNow(NamedTuple):
    """What a policy kept in the last hour."""

    pipeline: str
    policy: str
    """"" for what was kept without one: by a link, or late."""
    kept: int
    """Traces."""
    spans: int
    voted_yes: int
    shadow: bool


@dataclass(frozen=True, slots=True)
class TopHeld:
    """What is looked at. It does not change."""

    pods: Sequence[PodStory]
    calls: Mapping[tuple[str, str], Sequence[tuple[int, int]]]
    """By plugin and extension point, when the latest calls began and how long they took."""
    samplers: Sequence[SamplerView]
    since_the_start: Mapping[str, int]
    decided_after: int | None
    pipeline: PipelineNow
    now: int
    live: bool


@dataclass(frozen=True, slots=True)
class TopView:
    """One look. Lengths of time are nanoseconds."""

    now_unix_nano: int
    live: bool
    """`now` is the present; else where a simulation or a recording stands."""
    window: int
    """`results`, `plugins` and `refusals` are of attempts that ended in so many nanoseconds before its end."""
    window_end_unix_nano: int
    """`now`, or, where no attempt ended in the window before that, when the latest one did."""
    attempts_per_second: float
    """In the window."""
    attempts_per_second_lately: float
    """In the last 10 s."""
    results: Mapping[str, int]
    results_since_the_start: Mapping[str, int]
    pods: Mapping[str, int]
    """By state."""
    pending: int
    """Pods that wait for a node."""
    waiting: tuple[WaitingPods, ...]
    plugins: tuple[PluginNow, ...]
    refusals: tuple[RefusalNow, ...]
    policies: tuple[PolicyNow, ...]
    decided: int
    """Traces in the last hour."""
    kept: int
    decided_after: int | None
    """From a trace's first span to its decision, the median of the latest: the lag that the sampler is made to have."""
    pipeline: PipelineNow


def hold_top(library: Library, pipeline: PipelineNow, now: int, *, live: bool) -> TopHeld:
    """Return what is looked at."""
    after = [max(0, entry.decided_at - entry.arrived) for entry in islice(library.decisions.latest(), _LATEST)]
    return TopHeld(
        pods=library.stories.unordered(),
        calls=library.stories.plugin_times.recent(),
        samplers=library.window.tell(now, {}, {}),
        since_the_start=dict(library.stories.tallies.attempts),
        decided_after=median(after) if after else None,
        pipeline=pipeline,
        now=now,
        live=live,
    )


def look_top(held: TopHeld) -> TopView:
    """Return what goes on; takes long where much is held."""
    until = held.now
    lately = list(_lately(held.pods, until))
    rate = len(lately) * _SECOND / WINDOW
    if not lately:
        until = max((pod.attempts[-1].end_unix_nano for pod in held.pods if pod.attempts), default=0) or held.now
        lately = list(_lately(held.pods, until))
    states = Counter(pod.state for pod in held.pods)
    moment = sum(held.now - attempt.end_unix_nano < _MOMENT for _, attempt in lately)
    return TopView(
        now_unix_nano=held.now,
        live=held.live,
        window=WINDOW,
        window_end_unix_nano=until,
        attempts_per_second=rate,
        attempts_per_second_lately=moment * _SECOND / _MOMENT,
        results=dict(Counter(attempt.result or "no result" for _, attempt in lately).most_common()),
        results_since_the_start=dict(Counter(held.since_the_start).most_common()),
        pods={state: states[state] for state in POD_STATES if states[state]},
        pending=sum(POD_STATES[pod.state].waits for pod in held.pods),
        waiting=tuple(waiting_pods(held.pods)[:_MOST]),
        plugins=_plugins(held.calls, until),
        refusals=_refusals(lately),
        policies=tuple(row for sampler in held.samplers for row in _policies(sampler)),
        decided=sum(sampler.traces for sampler in held.samplers),
        kept=sum(sampler.kept for sampler in held.samplers),
        decided_after=held.decided_after,
        pipeline=held.pipeline,
    )


def _lately(pods: Iterable[PodStory], now: int) -> Iterable[tuple[PodStory, AttemptStory]]:
    for pod in pods:
        for attempt in reversed(pod.attempts):
            if now - attempt.end_unix_nano < WINDOW:
                yield pod, attempt
            elif now - attempt.start_unix_nano > WINDOW:
                break


def _plugins(calls: Mapping[tuple[str, str], Iterable[tuple[int, int]]], until: int) -> tuple[PluginNow, ...]:
    rows = []
    for who, each in calls.items():
        if took := sorted(took for start, took in each if start + took > until - WINDOW):
            rows.append(PluginNow(*who, len(took), median(took), took[-1]))
    return tuple(sorted(rows, key=lambda row: (-row.longest, row.plugin, row.point))[:_MOST])


def _refusals(lately: Iterable[tuple[PodStory, AttemptStory]]) -> tuple[RefusalNow, ...]:
    attempts = Counter[tuple[str, str]]()
    pods: dict[tuple[str, str], set[str]] = {}
    for pod, attempt in lately:
        # Of a bind without the Pod's name, so that Pods refused alike count together.
        for what in {(no.plugin, no.reason) for no in refusals_of(attempt)}:
            attempts[what] += 1
            pods.setdefault(what, set()).add(pod.key)
    rows = [RefusalNow(*what, times, len(pods[what])) for what, times in attempts.items()]
    return tuple(sorted(rows, key=lambda row: (-row.attempts, row.plugin, row.reason))[:_MOST])


def _policies(sampler: SamplerView) -> Iterable[PolicyNow]:
    rows = sampler.policies
    for row in rows:
        decided = row.would_keep if row.shadow else row.decided
        yield PolicyNow(sampler.pipeline, row.policy, decided, row.spans, row.voted_yes, row.shadow)
    others = sampler.kept - sum(row.decided for row in rows if not row.shadow)
    if others > 0:
        spans = sampler.kept_spans - sum(row.spans for row in rows if not row.shadow)
        yield PolicyNow(sampler.pipeline, "", others, max(0, spans), 0, shadow=False)
