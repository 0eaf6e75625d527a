"""The scheduler: takes Pods from the queue one after the other, and binds those that found a node in the background."""

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Protocol

from opentelemetry.trace import Tracer
from podtrail_instrumentation import Log, PropagationCounters, Span, log_long, start_reconcile_span
from podtrail_instrumentation.klog import info, structured

from .attempt import LONG_CYCLE, Attempt, AttemptRecord, Explanation, Failure
from .binding_cycle import BindingCycle
from .cache import Cache
from .client import POD_SCHEDULED, ApiError, PodCondition
from .durations import MILLISECOND, SECOND
from .framework.calling import Measures
from .framework.cycle_state import CycleState
from .framework.extending import PLUGIN as EXTENDERS
from .framework.extending import Extenders
from .framework.handle import Handle
from .framework.profile import Profile
from .framework.runtime import Framework
from .objects import Pod
from .queueing.entry import QueuedPod
from .queueing.events import ASSIGNED_POD_DELETE, Happening, Hints, hints_of
from .queueing.pre_enqueue import PreEnqueueReporter
from .queueing.queue import ProfileQueueing, QueueSettings, SchedulingQueue
from .scheduling_cycle import SchedulingCycle, Turn
from .watching import Watching

FLUSH_BACKOFF = SECOND
FLUSH_UNSCHEDULABLE = 30
"""Every how many flushes of the back-off queue the unschedulable pool is flushed."""

SCORES = logging.INFO - 10
"""V(10): every score is logged."""

_logger = logging.getLogger("podtrail_scheduler")


class Metrics(Measures, Protocol):
    """Who counts attempts, in metrics of kube-scheduler's names; durations are nanoseconds."""

    def attempt(self, result: str, profile: str, duration: int) -> None:
        """An attempt is over; `result` is Success, Unschedulable or Error."""
        ...

    def algorithm(self, duration: int) -> None:
        """A node was found for a Pod, or none."""
        ...

    def scheduled(self, entry: QueuedPod, now: int) -> None:
        """A Pod was bound."""
        ...

    def binding(self, change: int) -> None:
        """A binding cycle began (1) or ended (-1)."""
        ...


class _ProfileRun:
    """The two cycles of a profile."""

    def __init__(self, framework: Framework, handle: Handle, cycle: SchedulingCycle, binding: BindingCycle) -> None:
        self.framework = framework
        self.handle = handle
        self.cycle = cycle
        self.binding = binding
        self.propagation = PropagationCounters("kube-scheduler", framework.profile.name, "Pod")


class Scheduler(Watching):
    """Some profiles on one cluster. `tracer` None is the feature gate `SchedulerTracing` switched off."""

    def __init__(
        self,
        profiles: Sequence[tuple[Profile, Handle]],
        cache: Cache,
        *,
        tracer: Tracer | None,
        on_attempt: Callable[[AttemptRecord], None],
        propagate: bool = True,
        settings: QueueSettings | None = None,
        extenders: Extenders | None = None,
        reporter: PreEnqueueReporter | None = None,
        seed: str = "",
        metrics: Metrics | None = None,
        explain: Callable[[Pod, Explanation], None] | None = None,
        log: Log = log_long,
        logger: logging.Logger = _logger,
    ) -> None:
        """`seed` decides draws among equal nodes; `reporter` is told who is not ready for scheduling (KEP-5501).

        `propagate` is the feature gate AsyncTraceContextPropagation: without it annotations are left alone (KEP-5915).
        `explain` is shown the scores of each attempt.
        """
        handle = profiles[0][1]
        queue = SchedulingQueue(
            profiles[0][0].queue_sort.sort_key,
            {
                profile.name: ProfileQueueing(profile.pre_enqueue, _hints(profile, extenders is not None))
                for profile, _ in profiles
            },
            settings,
            nominations=handle.nominator,
            reporter=reporter,
        )
        super().__init__(queue, cache, handle, frozenset(profile.name for profile, _ in profiles))
        self._tracer = tracer
        self._propagate = propagate
        self._on_attempt = on_attempt
        self._explain = explain
        self._metrics = metrics
        self._log = log
        self._logger = logger
        self.under_way = 0
        """How many attempts have begun and not ended."""
        turn, random = Turn(), Random(seed)  # noqa: S311, reproducible on purpose
        self._profiles: dict[str, _ProfileRun] = {}
        for profile, own in profiles:
            framework = Framework(
                profile, handle.clock, cache.table, handle.nominator, trial=own.trial, measures=metrics
            )
            own.activate = self._activate
            counters = PropagationCounters("kube-scheduler", profile.name, "Pod")
            binding = BindingCycle(
                framework,
                own,
                permitted=self._permitted,
                counters=counters if tracer is not None and propagate else None,
                extenders=extenders,
            )
            run = _ProfileRun(framework, own, SchedulingCycle(framework, cache, turn, random, extenders), binding)
            run.propagation = counters
            self._profiles[profile.name] = run

    @property
    def propagation(self) -> Mapping[str, PropagationCounters]:
        """What was read from and written to Pods' annotations, by profile."""
        return {name: run.propagation for name, run in self._profiles.items()}

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By scheduler name."""
        return {name: run.framework.profile for name, run in self._profiles.items()}

    async def run(self, until: int | None = None) -> None:
        """Schedules for ever, beginning no attempt from `until` on; flushes the queue in the background."""
        clock = self.handle.clock
        clock.spawn(self._flush())
        while until is None or clock.now() < until:
            if await self.schedule_one():
                await clock.sleep(0)
            else:
                await self.something_to_do()

    async def schedule_one(self) -> bool:
        """Takes the next Pod through its scheduling cycle and has it bound in the background; False without one."""
        entry = self.queue.pop()
        if entry is None:
            return False
        run = self._profiles.get(entry.pod.scheduler_name)
        if run is None or self._need_not(entry, run):
            self.queue.done(entry.pod.uid)
            return True
        info(self._logger, 3, "Attempting to schedule pod", pod=entry.pod.key)
        self.under_way += 1
        attempt = Attempt(entry, entry.pod, self._start_root(entry, run), CycleState())
        if self._explain is not None or self._logger.isEnabledFor(SCORES):
            attempt.explanation = Explanation()
        run.framework.caller.begin_cycle()
        failure = await run.cycle.run(attempt)
        if attempt.explanation is not None:
            if self._explain is not None:
                self._explain(attempt.pod, attempt.explanation)
            _log_scores(self._logger, attempt.pod, attempt.explanation)
        if self._metrics is not None:
            self._metrics.algorithm(self.handle.clock.now() - attempt.root.started)
        if failure is None:
            if self._metrics is not None:
                self._metrics.binding(1)
            self.handle.clock.spawn(self._bind(attempt, run))
        else:
            self._failed(attempt, failure, run)
            self._end(attempt, failure)
        return True

    async def _flush(self) -> None:
        number = 0
        while True:
            # On the whole second, where windows of the back-off queue end.
            await self.handle.clock.sleep(FLUSH_BACKOFF - self.handle.clock.now() % FLUSH_BACKOFF)
            number += 1
            now = self.handle.clock.now()
            self.queue.flush_backoff(now)
            if number % FLUSH_UNSCHEDULABLE == 0:
                self.queue.flush_unschedulable(now)
            self.wake()

    def _need_not(self, entry: QueuedPod, run: _ProfileRun) -> bool:
        """Whether the Pod is going, or found its node in an attempt that it was queued again during."""
        pod = entry.pod
        if pod.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.key}"
            run.handle.event(pod, None, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self.cache.is_assumed(pod.uid)

    def _permitted(self, attempt: Attempt) -> None:
        self.queue.done(attempt.pod.uid)

    async def _bind(self, attempt: Attempt, run: _ProfileRun) -> None:
        failure = await run.binding.run(attempt)
        pod, now = attempt.pod, self.handle.clock.now()
        if self._metrics is not None:
            self._metrics.binding(-1)
            if failure is None:
                self._metrics.scheduled(attempt.entry, now)
        if failure is None:
            info(
                self._logger,
                2,
                "Successfully bound pod to node",
                pod=pod.key,
                node=attempt.node,
                evaluatedNodes=attempt.evaluated,
                feasibleNodes=attempt.feasible,
            )
            run.handle.event(
                pod, None, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {attempt.node}"
            )
            if self.handle.client.get_pod(pod.uid) is None:
                self.cache.forget(pod.uid)  # deleted while it was bound: the watch will not show it on a node
        else:
            freed = Happening(ASSIGNED_POD_DELETE, pod.on(attempt.node), None) if self.cache.forget(pod.uid) else None
            if freed is not None and failure.result == "Error":
                self.queue.move(freed, now)
            self._failed(attempt, failure, run)
            if freed is not None and failure.result != "Error":
                self.queue.move(freed, now, lambda other: other.uid != pod.uid)
        self._end(attempt, failure)
        self.wake()

    def _start_root(self, entry: QueuedPod, run: _ProfileRun) -> Span:
        pod, now = entry.pod, self.handle.clock.now
        return start_reconcile_span(
            "SchedulePod",
            pod.annotations if self._propagate else {},
            tracer=self._tracer,
            clock=now,
            attributes={
                "k8s.pod.name": pod.name,
                "k8s.pod.namespace": pod.namespace,
                "k8s.namespace.name": pod.namespace,
                "k8s.pod.uid": pod.uid,
                "scheduler.queue_wait_ms": (now() - entry.active_since) // MILLISECOND,
                "scheduler.profile": run.framework.profile.name,
                "scheduler.attempts": entry.attempts,
            },
            counters=run.propagation if self._propagate else None,
            log=self._log,
        )

    def _failed(self, attempt: Attempt, failure: Failure, run: _ProfileRun) -> None:
        """Puts the Pod back into the queue, unless it is gone, and writes why into its status and an Event."""
        entry, clock = attempt.entry, self.handle.clock
        if failure.result == "Error":
            text = structured("Error scheduling pod; retrying", err=failure.message, pod=attempt.pod.key)
            self._logger.error("%s", text)
        else:
            message = "Unable to schedule pod; no fit; waiting"
            info(self._logger, 2, message, pod=attempt.pod.key, err=failure.message)
        entry.refused_by, entry.pending_on = failure.refused_by, failure.pending_on
        entry.message = failure.message
        pod = self.handle.client.get_pod(attempt.pod.uid)
        if pod is None or pod.node_name:
            self.queue.done(attempt.pod.uid)
            return
        entry.pod = pod
        self.queue.give_back(entry, clock.now())
        hope = pod.nominated_node_name if failure.nominated_node is None else failure.nominated_node
        self.handle.nominator.observe(pod, pod.changed(nominated_node_name=hope))
        reason = "Unschedulable" if failure.result == "Unschedulable" else "SchedulerError"
        run.handle.event(pod, None, "Warning", "FailedScheduling", "Scheduling", failure.message)
        condition = PodCondition(POD_SCHEDULED, "False", reason, failure.message)
        changed = pod.conditions.get(POD_SCHEDULED) != ("False", reason, failure.message)
        nominated = hope if hope != pod.nominated_node_name else None
        if changed or nominated is not None:
            clock.spawn(self._patch(pod, condition if changed else None, nominated))

    async def _patch(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        try:
            await self.handle.client.patch_pod_status(pod, condition, nominated_node)
        except ApiError as refusal:
            self._logger.error("%s", structured("Error updating pod", err=str(refusal), pod=pod.key))

    def _end(self, attempt: Attempt, failure: Failure | None) -> None:
        root = attempt.root
        result = failure.result if failure is not None else "Success"
        if root.recording:
            told = {"scheduler.result": result}
            if failure is None:
                told["scheduler.selected_node"] = attempt.node
            else:
                root.fail(failure.message)
                if failure.nominated_node:
                    told["scheduler.nominated_node"] = failure.nominated_node
            root.set_attributes(told)
        root.end(LONG_CYCLE if attempt.cycle_took >= LONG_CYCLE else None)
        self.under_way -= 1
        assert root.ended is not None
        if self._metrics is not None:
            self._metrics.attempt(result, attempt.pod.scheduler_name, root.ended - root.started)
        self._on_attempt(
            AttemptRecord(
                attempt.pod,
                attempt.entry.attempts,
                result,
                failure.message if failure is not None else "",
                (failure.refused_by | failure.pending_on) if failure is not None else frozenset(),
                attempt.node if failure is None else "",
                root.started,
                root.ended,
            )
        )

    def _activate(self, pods: Sequence[Pod]) -> None:
        self.queue.activate([pod.uid for pod in pods], self.handle.clock.now())
        self.wake()


def _hints(profile: Profile, extended: bool) -> Hints:
    """The hints of a profile; extenders have no say of their own, so any event may help against their refusals."""
    hints = dict(profile.hints)
    if extended:
        for event, own in hints_of((), [EXTENDERS]).items():
            hints[event] = [*hints.get(event, ()), *own]
    return hints


def _log_scores(logger: logging.Logger, pod: Pod, explanation: Explanation) -> None:
    for plugin, scores in explanation.scores.items():
        for node, score in scores.items():
            info(logger, 10, "Plugin scored node for pod", pod=pod.key, plugin=plugin, node=node, score=score)
    for node, score in explanation.totals.items():
        info(logger, 10, "Calculated node's final score for pod", pod=pod.key, node=node, score=score)
