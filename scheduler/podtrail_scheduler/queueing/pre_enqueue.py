"""Runs PreEnqueue before a Pod becomes active and tells of what it said (KEP-5501)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from podtrail_scheduler.framework.answers import checked, in_words
from podtrail_scheduler.framework.aside import is_raised_by_plugin
from podtrail_scheduler.framework.extension_points import PreEnqueuePlugin
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Code, Status, error
from podtrail_scheduler.objects import Pod

from .telling import rejected_before_queueing

POD_SCHEDULED = "PodScheduled"
SAMPLED = 10
"""One of so many rounds is measured plugin by plugin."""

_logger = logging.getLogger("podtrail_scheduler.queueing")


class PreEnqueueReporter(Protocol):
    """Is told what changes in a Pod's readiness; there is none unless SchedulerPreEnqueuePodStatus is on."""

    def rejected(self, pod: Pod, message: str, now: int) -> None:
        """A plugin rejects `pod` for a reason that its status does not show yet."""
        ...

    def passed(self, pod: Pod, now: int) -> None:
        """`pod`, rejected before, passes all plugins."""
        ...


class PreEnqueueMeasures(Protocol):
    """What the queue reports of PreEnqueue to metrics."""

    def extension_point(self, point: str, status: str, profile: str, duration: int) -> None:
        """All PreEnqueue plugins that had to be asked for one Pod were; `duration` in nanoseconds."""
        ...

    def plugin(self, plugin: str, point: str, status: str, duration: int) -> None:
        """One PreEnqueue plugin was asked; `duration` in nanoseconds."""
        ...


class PreEnqueue:
    """Runs the PreEnqueue plugins of a Pod's profile; they are given by the profile's name."""

    def __init__(
        self, plugins: Mapping[str, Sequence[PreEnqueuePlugin]], reporter: PreEnqueueReporter | None = None
    ) -> None:
        self.plugins = plugins
        self.reporter = reporter
        """Who is told; None: nobody."""

    def run(self, entry: QueuedPod, now: int) -> str:
        """Sets whether `entry` is gated; returns the plugin that rejects it and did not do so before, or nothing.

        The plugin that gated it last is asked first. The first rejection ends the round.
        """
        plugins = self.plugins.get(entry.pod.scheduler_name, ())
        if not plugins:
            entry.gating_plugin = ""
            return ""
        ordered = sorted(plugins, key=lambda plugin: plugin.name != entry.gating_plugin) if entry.gated else plugins
        for plugin in ordered:
            status = self.ask(plugin, entry.pod)
            if status is not None and status.code is not Code.SUCCESS:
                rejected_before_queueing(entry, plugin.name, status)
                return self._gate(entry, plugin.name, status.message, now)
        entry.gating_plugin = ""
        if self.reporter is not None and entry.last_pre_enqueue_rejection:
            entry.last_pre_enqueue_rejection = ""
            self.reporter.passed(entry.pod, now)
        return ""

    def ask(self, plugin: PreEnqueuePlugin, pod: Pod) -> Status | None:
        """What the plugin answers; a status of code Error in place of an exception."""
        try:
            status: Status | None = checked(plugin.name, "preEnqueue", 0, plugin.pre_enqueue(pod))
        except BaseException as raised:  # whatever a plugin raises must not end the scheduler
            if not is_raised_by_plugin(raised):
                raise
            _logger.exception("Unexpected error running PreEnqueue plugin: pod %s, plugin %s", pod.key, plugin.name)
            return error(f"plugin {plugin.name} raised {in_words(raised)}")
        return status

    def _gate(self, entry: QueuedPod, plugin: str, message: str, now: int) -> str:
        newly = "" if plugin in entry.rejectors else plugin
        entry.refused_by |= {plugin}
        entry.gating_plugin = plugin
        entry.message = message
        if self.reporter is not None:
            known = entry.last_pre_enqueue_rejection
            if known is None:
                known = condition_message(entry.pod)
            entry.last_pre_enqueue_rejection = message
            if known != message:
                self.reporter.rejected(entry.pod, message, now)
        return newly


class MeasuredPreEnqueue(PreEnqueue):
    """`PreEnqueue` with durations told to metrics: of each round, and in one of `SAMPLED` of each plugin."""

    def __init__(self, unmeasured: PreEnqueue, measures: PreEnqueueMeasures, stopwatch: Callable[[], int]) -> None:
        super().__init__(unmeasured.plugins, unmeasured.reporter)
        self._measures = measures
        self._stopwatch = stopwatch
        self._rounds = 0
        self._last = Code.SUCCESS

    def run(self, entry: QueuedPod, now: int) -> str:
        """As `PreEnqueue.run`, measured."""
        self._rounds += 1
        self._last = Code.SUCCESS
        began = self._stopwatch()
        newly = super().run(entry, now)
        profile, took = entry.pod.scheduler_name, self._stopwatch() - began
        self._measures.extension_point("PreEnqueue", self._last.text, profile, took)
        return newly

    def ask(self, plugin: PreEnqueuePlugin, pod: Pod) -> Status | None:
        """As `PreEnqueue.ask`; in one round of `SAMPLED` the plugin's duration is told to metrics."""
        began = self._stopwatch()
        status = super().ask(plugin, pod)
        self._last = Code.SUCCESS if status is None else status.code
        if self._rounds % SAMPLED == 0:
            self._measures.plugin(plugin.name, "PreEnqueue", self._last.text, self._stopwatch() - began)
        return status


def condition_message(pod: Pod) -> str:
    """The message of the condition PodScheduled as long as it is False, empty without."""
    condition = pod.conditions.get(POD_SCHEDULED)
    return condition[2] if condition is not None and condition[0] == "False" else ""
