"""Counting attempts as they pass by. Groups that tell of none are only searched for a word."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import add
from typing import Any, Final, NamedTuple

from podtrail.component import Context, PassingProcessor, Taken
from podtrail.config.types import SECOND
from podtrail.otlp import (
    REFUSAL,
    ROOT_NAME,
    Attempt,
    Batch,
    Group,
    Rejection,
    SpanView,
    attempts_in,
    read_message,
    read_rejections,
    split,
)
from podtrail.otlp.pod_transition import TRANSITION_MARK, read_transition
from podtrail.recent import first
from podtrail.state import StateShape, known_version
from podtrail_processors.scheduling_metrics.config import Config
from podtrail_processors.scheduling_metrics.pending import PendingPods, SavedPods
from podtrail_processors.scheduling_metrics.tally import OTHER, AttemptTally, SaidNo, SavedTally

_LONGEST = 128
"""Characters of a label value."""
_ROOT = ROOT_NAME.encode()
_ATTEMPT_LABELS = ("profile", "result")
_PLUGIN_LABELS = ("plugin", "profile")
_OF_NODES = frozenset({"preFilter", "filter", ""})
"""The extension points at which a plugin says no to nodes; a message, which has none, counts nodes."""
_RUNNING = re.compile(r'running \w+ plugin "(?P<plugin>[^"]+)": ')
"""How the message of an attempt begins that ended with a plugin's error."""


class Series:
    """Admits so many different combinations of label values; all others are `other`.

    They are bounded in number and length, for they come from spans, which anybody may have sent.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def labels(self, *values: str) -> tuple[str, ...]:
        """Return the label values to count under; of the same values always the same objects."""
        cut = tuple(value[:_LONGEST] for value in values)
        known = self._known.get(cut)
        if known is None:
            known = cut if len(self._known) < self._most else (OTHER,) * len(values)
            if known is cut:
                self._known[cut] = cut
        return known

    def known(self) -> Collection[tuple[str, ...]]:
        """Return the label values that are told apart."""
        return self._known.keys()

    def label(self, value: str) -> str:
        """Return the label value to count under."""
        return self.labels(value)[0]


_SavedSeries = tuple[tuple[str, ...], ...]


class _Saved(NamedTuple):
    tally: SavedTally
    pending: SavedPods
    series: tuple[_SavedSeries, _SavedSeries, _SavedSeries]


_SHAPE: Final = StateShape[_Saved](_Saved)


class SchedulingMetrics(PassingProcessor):
    """Passes every batch as it is and counts the attempts in it.

    An attempt is counted once, when its root comes by, however often that is while it is remembered. A plugin that said
    no is counted once an attempt, with the nodes that its spans tell of when they are first seen; where no span tells
    of plugins, what the root's message says of them counts.
    """

    def __init__(self, config: Config, context: Context) -> None:
        metrics = context.metrics
        self._attempts = metrics.counter(
            "podtrail_scheduling_attempts_total", "Scheduling attempts, each counted once.", _ATTEMPT_LABELS
        )
        self._rejections = metrics.counter(
            "podtrail_scheduling_rejections_total",
            "Attempts that failed for a plugin's no, to nodes or to the bind; one counts under each such plugin.",
            _PLUGIN_LABELS,
        )
        self._rejected_nodes = metrics.counter(
            "podtrail_scheduling_rejected_nodes_total",
            "Nodes that a plugin said no to, summed over all attempts, also those that found another.",
            _PLUGIN_LABELS,
        )
        self._duration = metrics.histogram(
            "podtrail_scheduling_attempt_duration_seconds",
            "How long attempts took, from the start of the root to its end.",
            _seconds(config.attempt_duration_buckets),
            _ATTEMPT_LABELS,
        )
        self._waited = metrics.histogram(
            "podtrail_scheduling_queue_wait_seconds",
            "How long Pods waited in the scheduling queue before an attempt.",
            _seconds(config.queue_wait_buckets),
            _ATTEMPT_LABELS,
        )
        self._pending = PendingPods(config.max_pending_pods, config.pending_forgotten_after)
        # Each pipeline's is an instance of its own: what waits in one doesn't hide what waits in another.
        self._gauges = metrics.part()
        self._gauges.gauge(
            "podtrail_scheduling_pending_pods",
            "Pods whose latest attempt failed; a Pod counts under each plugin whose no it failed for.",
            _PLUGIN_LABELS,
        ).read_all_from(self._waiting)
        self._gauges.gauge(
            "podtrail_scheduling_pending_since_timestamp_seconds",
            "When the attempt ended since which the first of these Pods waits, in Unix seconds.",
            _PLUGIN_LABELS,
            combine=min,
        ).read_all_from(self._waiting_since)
        self._by_result = Series(config.max_series)
        self._by_plugin = Series(config.max_series)
        self._names = Series(config.max_series)
        """Names of plugins and profiles, so that what is remembered has each once."""
        self._tally = AttemptTally(config.remembered_attempts, config.pending_forgotten_after, self._count_rejection)

    def add(self, batch: Batch, now: int) -> Taken:
        """Count, and pass the batch on."""
        self._forget(now)
        for group in batch.groups:
            if REFUSAL in group.spans or _ROOT in group.spans:
                self._look_at(group, now)
            elif TRANSITION_MARK in group.spans:
                self._look_at_transitions(group)
        return Taken((batch,))

    def expire(self, now: int, limit: int) -> Sequence[Batch]:  # noqa: ARG002 - as every processor
        """Forget Pods and attempts that nothing was heard of for long; nothing leaves."""
        self._forget(now)
        return ()

    def _forget(self, now: int) -> None:
        self._tally.expire(now)
        self._pending.expire(now)

    def deadline(self) -> int | None:
        """Return when the next Pod or attempt is forgotten."""
        return first((self._pending.deadline(), self._tally.deadline()))

    def drain(self, now: int) -> Sequence[Batch]:  # noqa: ARG002
        """Count what still awaits its root."""
        self._tally.forget_all()
        self._gauges.close()
        return ()

    state_version = 1

    def save_state(self) -> Any:
        """Return what is remembered of attempts and Pods, and the label values that are told apart."""
        series = (tuple(self._by_result.known()), tuple(self._by_plugin.known()), tuple(self._names.known()))
        return _Saved(self._tally.saved(), self._pending.saved(), series)

    def restore_state(self, version: int, state: Any) -> None:
        """Remember what was saved."""
        known_version(version, 1)
        saved = _SHAPE.read(state)
        self._tally.restore(saved.tally)
        self._pending.restore(saved.pending)
        for series, known in zip((self._by_result, self._by_plugin, self._names), saved.series, strict=True):
            for labels in known:
                series.labels(*labels)

    def take_over(self, predecessor: "SchedulingMetrics", now: int) -> None:  # noqa: ARG002
        """Take what the other one remembers of attempts."""
        self._tally.take_over(predecessor._tally)
        self._pending.take_over(predecessor._pending)
        predecessor._gauges.close()

    def _look_at(self, group: Group, now: int) -> None:
        refused = [rejection for raw in split(group.spans) for rejection in read_rejections(raw)]
        if refused:
            self._tally.note_refusals(group.trace_id, self._refusals(refused), now)
        for attempt in attempts_in(group.spans):
            self._note_root(attempt, now)

    def _look_at_transitions(self, group: Group) -> None:
        for raw in split(group.spans):
            told = read_transition(SpanView(raw))
            if told is not None and told.kind in ("scheduled", "deleted"):
                self._pending.ended(told.uid)

    def _note_root(self, attempt: Attempt, now: int) -> None:
        profile = self._names.label(attempt.profile)
        self._pending.attempted(attempt, profile, now)
        if not self._tally.note_root(attempt, profile, partial(self._in_message, attempt), now):
            return
        labels = self._by_result.labels(attempt.profile, attempt.result)
        self._attempts.add(1, *labels)
        if attempt.start and attempt.end >= attempt.start:
            seconds = (attempt.end - attempt.start) / SECOND
            self._duration.observe(seconds, *labels, trace_id=attempt.trace_id, moment=attempt.end)
        if attempt.queue_wait is not None:
            seconds = attempt.queue_wait / SECOND
            self._waited.observe(seconds, *labels, trace_id=attempt.trace_id, moment=attempt.end or attempt.start)

    def _in_message(self, attempt: Attempt) -> Mapping[str, SaidNo]:
        if running := _RUNNING.match(attempt.message):
            return {self._names.label(running["plugin"]): SaidNo(0, to_nodes_only=False)}
        return self._refusals(read_message(attempt.message).rejections)

    def _refusals(self, rejections: Sequence[Rejection]) -> Mapping[str, SaidNo]:
        """Return what each plugin said no to; rejections that name no plugin are left out."""
        found: dict[str, SaidNo] = {}
        for rejection in rejections:
            if rejection.plugin:
                plugin = self._names.label(rejection.plugin)
                nodes, only = found.get(plugin, SaidNo(0, to_nodes_only=True))
                only = only and rejection.point in _OF_NODES
                found[plugin] = SaidNo(nodes + max(0, rejection.nodes or 0), only)
        return found

    def _count_rejection(self, trace_id: bytes, profile: str, plugin: str, nodes: int, failed_for_it: bool) -> None:
        labels = self._by_plugin.labels(plugin, profile)
        if failed_for_it:
            self._pending.refused(trace_id, plugin)
            self._rejections.add(1, *labels)
        self._rejected_nodes.add(nodes, *labels)

    def _waiting(self) -> Mapping[tuple[str, ...], float]:
        return self._told(self._pending.counts(), add)

    def _waiting_since(self) -> Mapping[tuple[str, ...], float]:
        return self._told(self._pending.since(), min)

    def _told(
        self, values: Mapping[tuple[str, str], float], combine: Callable[[float, float], float]
    ) -> Mapping[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for key, value in values.items():
            labels = self._by_plugin.labels(*key)
            found[labels] = combine(found[labels], value) if labels in found else value
        return found


def _seconds(bounds: Sequence[int]) -> list[float]:
    return [bound / SECOND for bound in bounds]
