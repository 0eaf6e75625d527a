"""Counting attempts as they pass by. Groups that tell of none are only searched for a word."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from podtrail.component import Context, PassingProcessor, Taken
from podtrail.config.types import SECOND
from podtrail.otlp import (
    REFUSAL,
    ROOT_NAME,
    Attempt,
    Batch,
    Group,
    Rejection,
    attempts_in,
    read_message,
    read_rejections,
    split,
)
from podtrail_processors.scheduling_metrics.config import Config
from podtrail_processors.scheduling_metrics.tally import AttemptTally

_OTHER = "other"
_LONGEST = 128
"""Characters of a label value."""
_ROOT = ROOT_NAME.encode()
_ATTEMPT_LABELS = ("profile", "result")
_PLUGIN_LABELS = ("plugin", "profile")


class Series:
    """Admits so many different combinations of label values; all others are `other`.

    They are bounded in number and length, for they come from spans, which anybody may have sent.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[Hashable] = set()

    def labels(self, *values: str) -> tuple[str, ...]:
        """Return the label values to count under."""
        cut = tuple(value[:_LONGEST] for value in values)
        if cut not in self._known:
            if len(self._known) >= self._most:
                return (_OTHER,) * len(values)
            self._known.add(cut)
        return cut


class SchedulingMetrics(PassingProcessor):
    """Passes every batch as it is and counts the attempts in it.

    An attempt is counted once, when its root comes by, however often that is while it is remembered. A plugin that said
    no is counted once an attempt, with the nodes that its spans tell of when they are first seen; where no span tells
    of plugins, what the root's message says of them counts.
    """

    def __init__(self, config: Config, context: Context) -> None:
        metrics = context.metrics
        self._attempts = metrics.counter(
            "podtrail_scheduling_attempts", "Scheduling attempts, each counted once.", _ATTEMPT_LABELS
        )
        self._rejections = metrics.counter(
            "podtrail_scheduling_rejections",
            "Attempts in which a plugin said no; an attempt counts under each plugin that did.",
            _PLUGIN_LABELS,
        )
        self._rejected_nodes = metrics.counter(
            "podtrail_scheduling_rejected_nodes",
            "Nodes that a plugin said no to, summed over attempts.",
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
        self._by_result = Series(config.max_series)
        self._by_plugin = Series(config.max_series)
        self._tally = AttemptTally(config.remembered_attempts, self._count_rejection)

    def add(self, batch: Batch, now: int) -> Taken:  # noqa: ARG002 - nothing here depends on the time
        """Count, and pass the batch on."""
        for group in batch.groups:
            if REFUSAL in group.spans or _ROOT in group.spans:
                self._look_at(group)
        return Taken((batch,))

    def drain(self, now: int) -> Sequence[Batch]:  # noqa: ARG002
        """Count what still awaits its root."""
        self._tally.forget_all()
        return ()

    def take_over(self, predecessor: "SchedulingMetrics", now: int) -> None:  # noqa: ARG002
        """Take what the other one remembers of attempts."""
        self._tally.take_over(predecessor._tally)

    def _look_at(self, group: Group) -> None:
        refused = [rejection for raw in split(group.spans) for rejection in read_rejections(raw)]
        if refused:
            self._tally.note_refusals(group.trace_id, _by_plugin(refused))
        for attempt in attempts_in(group.spans):
            self._note_root(attempt)

    def _note_root(self, attempt: Attempt) -> None:
        if not self._tally.note_root(attempt.trace_id, attempt.profile, partial(_in_message, attempt)):
            return
        labels = self._by_result.labels(attempt.profile, attempt.result)
        self._attempts.add(1, *labels)
        if attempt.start and attempt.end >= attempt.start:
            self._duration.observe((attempt.end - attempt.start) / SECOND, *labels)
        if attempt.queue_wait is not None:
            self._waited.observe(attempt.queue_wait / SECOND, *labels)

    def _count_rejection(self, profile: str, plugin: str, nodes: int) -> None:
        labels = self._by_plugin.labels(plugin, profile)
        self._rejections.add(1, *labels)
        self._rejected_nodes.add(nodes, *labels)


def _in_message(attempt: Attempt) -> Mapping[str, int]:
    return _by_plugin(read_message(attempt.message).rejections)


def _by_plugin(rejections: Sequence[Rejection]) -> Mapping[str, int]:
    """Return the nodes that each plugin said no to; rejections that name no plugin are left out."""
    nodes: dict[str, int] = {}
    for rejection in rejections:
        if rejection.plugin:
            nodes[rejection.plugin] = nodes.get(rejection.plugin, 0) + max(0, rejection.nodes or 0)
    return nodes


def _seconds(bounds: Sequence[int]) -> list[float]:
    return [bound / SECOND for bound in bounds]
