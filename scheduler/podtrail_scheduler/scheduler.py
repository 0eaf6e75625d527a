"""The scheduler: takes Pods from the queue one after the other, and binds those that found a node in the background.

An attempt is a generator that yields whenever time has passed: unix nanoseconds at which it wants to go on, or the
`WaitingPod` that must be decided first. Between its yields nothing else happens, so whoever drives it decides what
runs at the same time: the next attempt may begin when this one has yielded for the first time.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from opentelemetry.trace import Tracer
from podtrail_instrumentation import Log, PropagationCounters, Span, log_long, start_reconcile_span

from .attempt import ROOT_THRESHOLD, Attempt, AttemptRecord, Choice, Failure
from .binding_cycle import BindingCycle, Pause
from .cache import Cache
from .durations import MILLISECOND
from .framework.cycle_state import CycleState
from .framework.handle import Handle
from .framework.profile import Profile
from .framework.runtime import Framework
from .framework.trial import fits
from .objects import Node, Pod
from .queueing.changes import node_scheduling_properties_change
from .queueing.entry import QueuedPod
from .queueing.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, NODE_ADD, ClusterEvent, Happening
from .queueing.queue import ProfileQueueing, SchedulingQueue
from .scheduling_cycle import SchedulingCycle


class Scheduler:
    """One profile on one cluster. `tracer` None is the feature gate `SchedulerTracing` switched off."""

    def __init__(
        self,
        profile: Profile,
        handle: Handle,
        cache: Cache,
        *,
        tracer: Tracer | None,
        on_attempt: Callable[[AttemptRecord], None],
        log: Log = log_long,
    ) -> None:
        self.profile = profile
        self.queue = SchedulingQueue(
            profile.queue_sort.sort_key, {profile.name: ProfileQueueing(profile.pre_enqueue, profile.hints)}
        )
        self.propagation = PropagationCounters("kube-scheduler", profile.name, "Pod")
        self._handle = handle
        self._clock = handle.clock
        self._cache = cache
        self._framework = Framework(profile, handle.clock)
        self._cycle = SchedulingCycle(self._framework, cache, handle.nominator)
        self._binding = BindingCycle(self._framework, cache, handle, self.queue)
        self._tracer = tracer
        self._on_attempt = on_attempt
        self._log = log
        handle.fits = lambda pod, node, nodes: fits(profile, pod, node, nodes)

    def pod_added(self, pod: Pod) -> None:
        """The watch shows a new Pod."""
        if pod.node_name:
            self._cache.set_pod(pod)
            self._move(ASSIGNED_POD_ADD, None, pod)
        else:
            self.queue.add(pod, self._clock.now())

    def pod_updated(self, old: Pod, new: Pod) -> None:
        """The watch shows a changed Pod; one that was bound leaves the queue."""
        if not new.node_name:
            if not self._cache.is_assumed(new.uid):
                self.queue.update(old, new, self._clock.now())
            return
        self._cache.set_pod(new)
        if not old.node_name:
            self.queue.delete(new.uid)
            self._handle.nominator.withdraw(new.uid)
            self._move(ASSIGNED_POD_ADD, old, new)

    def pod_deleted(self, pod: Pod) -> None:
        """The watch shows that a Pod is gone."""
        self._handle.nominator.withdraw(pod.uid)
        self.queue.delete(pod.uid)
        if (waiting := self._handle.waiting.get(pod.uid)) is not None:
            waiting.reject("", "pod deleted")
        if pod.node_name:
            self._cache.remove_pod(pod.uid)
            self._move(ASSIGNED_POD_DELETE, pod, None)

    def node_added(self, node: Node) -> None:
        """The watch shows a new node."""
        self._cache.set_node(node)
        self._move(NODE_ADD, None, node)

    def node_updated(self, old: Node, new: Node) -> None:
        """The watch shows a changed node."""
        self._cache.set_node(new)
        for event in node_scheduling_properties_change(old, new):
            self._move(event, old, new)

    def next_attempt(self) -> Iterator[Pause] | None:
        """Takes the next Pod from the queue; None when none is active."""
        entry = self.queue.pop()
        return None if entry is None else self._attempt(entry)

    def _attempt(self, entry: QueuedPod) -> Iterator[Pause]:
        attempt = Attempt(entry, entry.pod, self._start_root(entry), CycleState())
        with attempt.root.active():
            choice = self._cycle.run(attempt)
        yield self._clock.now()
        failure = choice.failure
        if failure is None:
            counters = self.propagation if self._tracer is not None else None
            failure = yield from self._binding.run(attempt, choice, counters)
        if failure is None:
            self._bound(attempt.pod.uid)
        else:
            self._failed(attempt, failure)
        self._end(attempt, choice, failure)

    def _bound(self, uid: str) -> None:
        self._handle.nominator.withdraw(uid)
        self.queue.done(uid)
        if self._handle.client.get_pod(uid) is None:
            self._cache.forget(uid)  # deleted while it was bound: the watch will not show it on a node

    def _start_root(self, entry: QueuedPod) -> Span:
        pod = entry.pod
        return start_reconcile_span(
            "SchedulePod",
            pod.annotations,
            tracer=self._tracer,
            clock=self._clock.now,
            attributes={
                "k8s.pod.name": pod.name,
                "k8s.pod.namespace": pod.namespace,
                "k8s.namespace.name": pod.namespace,
                "k8s.pod.uid": pod.uid,
                "scheduler.queue_wait_ms": (self._clock.now() - entry.active_since) // MILLISECOND,
                "scheduler.profile": self._framework.profile.name,
                "scheduler.attempts": entry.attempts,
            },
            counters=self.propagation,
            log=self._log,
        )

    def _failed(self, attempt: Attempt, failure: Failure) -> None:
        """Puts the Pod back into the queue, unless it is gone, and writes why into its status."""
        entry, now = attempt.entry, self._clock.now()
        entry.refused_by, entry.pending_on = failure.refused_by, failure.pending_on
        entry.message = failure.message
        current = self._handle.client.get_pod(attempt.pod.uid)
        if current is None or current.deletion_timestamp is not None or current.node_name:
            self.queue.done(attempt.pod.uid)
            return
        entry.pod = current
        if failure.nominated_node is not None:
            entry.pod = replace(current, nominated_node_name=failure.nominated_node)
            self._handle.nominator.withdraw(current.uid)
            if failure.nominated_node:
                self._handle.nominator.nominate(entry.pod, failure.nominated_node)
        self.queue.give_back(entry, now)
        self._handle.client.patch_status(entry.pod, failure.message, failure.nominated_node)

    def _end(self, attempt: Attempt, choice: Choice, failure: Failure | None) -> None:
        root = attempt.root
        result = failure.result if failure is not None else "Success"
        if root.recording:
            root.set_attributes({"scheduler.result": result})
            if failure is None:
                root.set_attributes({"scheduler.selected_node": choice.node})
            else:
                root.fail(failure.message)
                if failure.nominated_node:
                    root.set_attributes({"scheduler.nominated_node": failure.nominated_node})
        root.end(ROOT_THRESHOLD)
        assert root.ended is not None
        self._on_attempt(
            AttemptRecord(
                attempt.pod,
                attempt.entry.attempts,
                result,
                failure.message if failure is not None else "",
                failure.refused_by if failure is not None else frozenset(),
                choice.node if failure is None else "",
                root.started,
                root.ended,
            )
        )

    def _move(self, event: ClusterEvent, old: Pod | Node | None, new: Pod | Node | None) -> None:
        self.queue.move(Happening(event, old, new), self._clock.now())
