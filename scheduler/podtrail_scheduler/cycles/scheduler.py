"""The scheduler: takes Pods from the queue one after the other, and binds those that found a node in the background."""

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random

from opentelemetry.trace import Tracer
from podtrail_instrumentation import Log, PropagationCounters, log_long
from podtrail_instrumentation.klog import info

from podtrail_scheduler.framework.aside import IN_PLACE, Aside
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ASSIGNED_POD_DELETE, Happening
from podtrail_scheduler.framework.extending import Extenders
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.queueing.pre_enqueue import PreEnqueueReporter
from podtrail_scheduler.queueing.queue import ProfileQueueing, SchedulingQueue, SchedulingQueueSettings
from podtrail_scheduler.runtime.framework import Framework
from podtrail_scheduler.runtime.measuring import AttemptMetrics
from podtrail_scheduler.runtime.profile import Profile
from podtrail_scheduler.runtime.queue_plugins import order_of, pre_enqueue_of, queueing_hints_of

from .attempt import AttemptFailure, AttemptRecord, RunningAttempt, ScoreExplanation
from .attempt_spans import ConfigurationInForce, end_root, start_root
from .binding_cycle import BindingCycle
from .cache import Cache
from .failures import FailureHandler
from .scheduling_cycle import SchedulingCycle, Turn
from .turns import Turns
from .watching import Watching

FLUSH_BACKOFF = SECOND
"""Nanoseconds between two flushes of the back-off queue (kube-scheduler's `flushBackoffQCompleted`)."""
FLUSH_UNSCHEDULABLE = 30
"""Every how many flushes of the back-off queue the unschedulable pool is flushed."""

SCORES = logging.INFO - 10
"""V(10): every score is logged."""

TRACES = logging.INFO - 2
"""V(2): searches for a node that took long are logged; utiltrace logs none below."""

UNTOLD = ConfigurationInForce()
"""Nothing is told of the configuration."""

_logger = logging.getLogger("podtrail_scheduler")


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
        settings: SchedulingQueueSettings | None = None,
        extenders: Extenders | None = None,
        reporter: PreEnqueueReporter | None = None,
        seed: str = "",
        metrics: AttemptMetrics | None = None,
        aside: Aside = IN_PLACE,
        explain: Callable[[Pod, ScoreExplanation], None] | None = None,
        configured: ConfigurationInForce = UNTOLD,
        log: Log = log_long,
        logger: logging.Logger = _logger,
    ) -> None:
        """`seed` decides draws among equal nodes; `reporter` is told who is not ready for scheduling (KEP-5501).

        `propagate` is the feature gate AsyncTraceContextPropagation: without it annotations are left alone (KEP-5915).
        Plugins of others run `aside`. `explain` is shown the scores of each attempt, `configured` is what each tells of
        the configuration.
        """
        handle = profiles[0][1]
        self._aside = aside
        self._extenders = extenders
        queue = SchedulingQueue(
            order_of(profiles[0][0].queue_sort, aside),
            self._queueing(profiles),
            settings,
            nominations=handle.nominator,
            reporter=reporter,
        )
        turns = Turns(handle.clock, self._aside_of_queue(profiles))
        super().__init__(queue, cache, handle, frozenset(profile.name for profile, _ in profiles), turns)
        self._tracer = tracer
        self._propagate = propagate
        self._on_attempt = on_attempt
        self._explain = explain
        self._metrics = metrics
        self._log = log
        self._logger = logger
        self._failures = FailureHandler(queue, handle, logger)
        self.under_way = 0
        """How many attempts have begun and not ended."""
        self._configured = configured
        self._turn, self._random = Turn(), Random(seed)  # noqa: S311, reproducible on purpose
        self._profiles = {profile.name: self._run_of(profile, own, None) for profile, own in profiles}

    def reconfigure(self, profiles: Sequence[tuple[Profile, Handle]], configured: ConfigurationInForce) -> None:
        """Schedules with these from the next attempt on; the attempts under way end with what they began with.

        The profiles have the names of those that they take the place of, and sort the queue as they did.
        """
        self.turns.soon(self._reconfigure, profiles, configured)

    def _reconfigure(self, profiles: Sequence[tuple[Profile, Handle]], configured: ConfigurationInForce) -> None:
        self._configured = configured
        self._profiles = {profile.name: self._run_of(profile, own, self._profiles) for profile, own in profiles}
        self.turns.use(self._aside_of_queue(profiles))
        self.queue.reconfigure(self._queueing(profiles), self.handle.clock.now())
        self.wake()

    def _aside_of_queue(self, profiles: Sequence[tuple[Profile, Handle]]) -> Aside:
        return self._aside if any(profile.asked_by_queue for profile, _ in profiles) else IN_PLACE

    def _queueing(self, profiles: Sequence[tuple[Profile, Handle]]) -> dict[str, ProfileQueueing]:
        aside, extended = self._aside, self._extenders is not None
        return {
            profile.name: ProfileQueueing(
                pre_enqueue_of(profile, aside), queueing_hints_of(profile, aside, extended=extended)
            )
            for profile, _ in profiles
        }

    def _run_of(self, profile: Profile, own: Handle, before: Mapping[str, _ProfileRun] | None) -> _ProfileRun:
        framework = Framework(
            profile,
            own.clock,
            self.cache.table,
            own.nominator,
            trial=own.trial,
            measures=self._metrics,
            aside=self._aside,
        )
        own.aside = framework.aside
        own.activate = self._activate
        counters = PropagationCounters("kube-scheduler", profile.name, "Pod")
        if before is not None:
            counters = before[profile.name].propagation
        binding = BindingCycle(
            framework,
            own,
            permitted=self._permitted,
            counters=counters if self._tracer is not None and self._propagate else None,
            extenders=self._extenders,
        )
        cycle = SchedulingCycle(
            framework, self.cache, self._turn, self._random, log=self._log_search, extenders=self._extenders
        )
        run = _ProfileRun(framework, own, cycle, binding)
        run.propagation = counters
        return run

    @property
    def propagation(self) -> Mapping[str, PropagationCounters]:
        """What was read from and written to Pods' annotations, by profile."""
        return {name: run.propagation for name, run in self._profiles.items()}

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles by scheduler name."""
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
        async with self.turns:
            entry = await self.turns.do(self.queue.pop)
            if entry is None:
                return False
            run = self._profiles.get(entry.pod.scheduler_name)
            if run is None or self._need_not(entry, run):
                self.queue.done(entry.pod.uid)
            else:
                await self._attempt(entry, run)
        return True

    async def _attempt(self, entry: QueuedPod, run: _ProfileRun) -> None:
        info(self._logger, 3, "Attempting to schedule pod", pod=entry.pod.key)
        self.under_way += 1
        counters = run.propagation if self._propagate else None
        root = start_root(entry, self._tracer, self.handle.clock.now, counters, self._log, self._configured)
        measured = self._metrics is not None and self._metrics.records_plugins()
        attempt = RunningAttempt(entry, entry.pod, root, CycleState(measures_plugins=measured))
        if self._explain is not None or self._logger.isEnabledFor(SCORES):
            attempt.explanation = ScoreExplanation()
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
            await self.turns.do(self._failures.handle, attempt, failure, run.handle)
            self._end(attempt, failure)

    async def _flush(self) -> None:
        number = 0
        while True:
            # On the whole second, where windows of the back-off queue end.
            await self.handle.clock.sleep(FLUSH_BACKOFF - self.handle.clock.now() % FLUSH_BACKOFF)
            number += 1
            self.turns.soon(self._flush_queue, number % FLUSH_UNSCHEDULABLE == 0)

    def _flush_queue(self, everything: bool) -> None:
        now = self.handle.clock.now()
        self.queue.flush_backoff(now)
        if everything:
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

    def _log_search(self, text: str) -> None:
        if self._logger.isEnabledFor(TRACES):
            self._log(text)

    def _permitted(self, attempt: RunningAttempt) -> None:
        self.turns.soon(self.queue.done, attempt.pod.uid)

    async def _bind(self, attempt: RunningAttempt, run: _ProfileRun) -> None:
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
                # Deleted while it was bound: the watch will not show it on a node.
                self.turns.soon(self.cache.forget, pod.uid)
        else:
            self.turns.soon(self._not_bound, attempt, failure, run.handle)
        self._end(attempt, failure)
        self.wake()

    def _not_bound(self, attempt: RunningAttempt, failure: AttemptFailure, profile: Handle) -> None:
        """Frees the room of a Pod that was not bound after all."""
        pod, now = attempt.pod, self.handle.clock.now()
        freed = Happening(ASSIGNED_POD_DELETE, pod.on(attempt.node), None) if self.cache.forget(pod.uid) else None
        if freed is not None and failure.result == "Error":
            self.queue.move(freed, now)
        self._failures.handle(attempt, failure, profile)
        if freed is not None and failure.result != "Error":
            self.queue.move(freed, now, lambda other: other.uid != pod.uid)
        self.wake()

    def _end(self, attempt: RunningAttempt, failure: AttemptFailure | None) -> None:
        root, result = attempt.root, failure.result if failure is not None else "Success"
        end_root(attempt, failure)
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
        self.turns.soon(self._activate_now, [pod.uid for pod in pods])

    def _activate_now(self, uids: Sequence[str]) -> None:
        self.queue.activate(uids, self.handle.clock.now())
        self.wake()


def _log_scores(logger: logging.Logger, pod: Pod, explanation: ScoreExplanation) -> None:
    for plugin, scores in explanation.scores.items():
        for node, score in scores.items():
            info(logger, 10, "Plugin scored node for pod", pod=pod.key, plugin=plugin, node=node, score=score)
    for node, score in explanation.totals.items():
        info(logger, 10, "Calculated node's final score for pod", pod=pod.key, node=node, score=score)
