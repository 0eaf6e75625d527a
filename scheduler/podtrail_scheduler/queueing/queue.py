"""The scheduling queue: active heap, back-off and unschedulable pool (kube-scheduler's `PriorityQueue`).

A refused Pod waits in the unschedulable pool until the hint of a plugin that refused it answers Queue to an event, or
five minutes are over; then it finishes its back-off and is active again. Events that come while a Pod is being tried
are remembered and looked at when it comes back. A Pod that PreEnqueue holds back is gated: it sits in the
unschedulable pool until PreEnqueue lets it pass. Times are unix nanoseconds, given by the caller.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from podtrail_scheduler.framework.events import CONFIGURATION_CHANGE, FORCE_ACTIVATE, POD_ADD, TIMEOUT, Happening, Hints
from podtrail_scheduler.framework.extension_points import PreEnqueuePlugin
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import MINUTE, SECOND

from . import telling
from .backoff import BackoffQueue
from .changes import pod_scheduling_properties_change
from .counts import QueueCounts
from .heap import EntryHeap
from .in_flight import InFlight
from .interest import Interest, Strategy
from .pre_enqueue import MeasuredPreEnqueue, PreEnqueue, PreEnqueueMeasures, PreEnqueueReporter
from .unschedulable import UnschedulablePool

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


@dataclass(frozen=True, slots=True)
class SchedulingQueueSettings:
    """Lengths of time in nanoseconds; kube-scheduler's defaults."""

    initial_backoff: int = 1 * SECOND
    max_backoff: int = 10 * SECOND
    """0: Pods come back at once."""
    max_unschedulable: int = 5 * MINUTE
    """How long a Pod stays in the unschedulable pool if no event helps."""
    pop_from_backoff: bool = True
    """The feature gate SchedulerPopFromBackoffQ: with nothing active, Pods are popped before their back-off is over."""


class ProfileQueueing(NamedTuple):
    """The PreEnqueue plugins and hints of a profile."""

    pre_enqueue: Sequence[PreEnqueuePlugin]
    hints: Hints


class Nominations(Protocol):
    """The nominated nodes of Pods (kube-scheduler's `nominator`); kept up by the queue as Pods come, change and go."""

    def observe(self, old: Pod | None, new: Pod) -> None:
        """A Pod without a node came (`old` None) or changed."""
        ...

    def withdraw(self, uid: str) -> None:
        """The Pod is gone."""
        ...


class SchedulingQueue:
    """Every Pod that has no node yet and is not being tried is in exactly one place of it."""

    def __init__(
        self,
        sort_key: Callable[[QueuedPod], tuple[int, ...]],
        profiles: Mapping[str, ProfileQueueing],
        settings: SchedulingQueueSettings | None = None,
        *,
        nominations: Nominations | None = None,
        reporter: PreEnqueueReporter | None = None,
    ) -> None:
        """`profiles` are by scheduler name and share one order, `sort_key`."""
        self._settings = settings or SchedulingQueueSettings()
        self._interest = Interest({name: profile.hints for name, profile in profiles.items()})
        self._pre_enqueue = PreEnqueue({name: each.pre_enqueue for name, each in profiles.items()}, reporter)
        self._nominations = nominations
        self._active = EntryHeap(sort_key)
        self._backoff = BackoffQueue(
            self._settings.initial_backoff,
            self._settings.max_backoff,
            sort_key,
            pop_from_backoff=self._settings.pop_from_backoff,
        )
        self._unschedulable = UnschedulablePool()
        self._in_flight = InFlight()
        self.counts = QueueCounts()
        self._cycle = 0

    def reconfigure(self, profiles: Mapping[str, ProfileQueueing], now: int) -> None:
        """Asks other plugins from now on; whoever was refused is tried again, for those that did may be gone."""
        self._interest = Interest({name: profile.hints for name, profile in profiles.items()})
        self._pre_enqueue.plugins = {name: each.pre_enqueue for name, each in profiles.items()}
        self.move(Happening(CONFIGURATION_CHANGE), now)

    def report_to(self, reporter: PreEnqueueReporter) -> None:
        """Has changes of readiness told from now on (KEP-5501)."""
        self._pre_enqueue.reporter = reporter

    def measure(self, measures: PreEnqueueMeasures, stopwatch: Callable[[], int]) -> None:
        """Has PreEnqueue measured from now on; `stopwatch` gives nanoseconds."""
        self._pre_enqueue = MeasuredPreEnqueue(self._pre_enqueue, measures, stopwatch)

    def add(self, pod: Pod, now: int) -> None:
        """A Pod without a node was created."""
        if self._nominations is not None:
            self._nominations.observe(None, pod)
        self._to_active(QueuedPod(pod, queued_at=now), POD_ADD.label, now)

    def pop(self) -> QueuedPod | None:
        """The next Pod to try, its attempt counted; call `done` or `give_back` when the attempt is over."""
        while (entry := self._pop()) is not None:
            if entry.pod.uid in self._in_flight:
                continue
            entry.attempts += 1
            self._in_flight.take_off(entry)
            self.counts.left(entry)
            self._cycle += 1
            return entry
        return None

    def done(self, uid: str) -> None:
        """Ends the attempt of a Pod that does not come back."""
        self._in_flight.land(uid)

    def give_back(self, entry: QueuedPod, now: int) -> None:
        """Returns a Pod whose attempt failed; `refused_by` and `pending_on` say by whom, neither is an error.

        A Pod that is in the queue already, because it changed while it was bound and deleted, stays where it is.
        """
        uid = entry.pod.uid
        if uid in self:
            self.done(uid)
            telling.present_already(entry)
            return
        if entry.rejectors:
            entry.unschedulable_count += 1
            entry.errors = 0
        else:
            entry.errors += 1
        entry.queued_at = now
        entry.backoff_expiration = None
        entry.flushed, entry.flushed_at = False, 0
        self.counts.refused(entry)
        strategy = self._strategy_of_returning(entry)
        self.done(uid)
        self._requeue(entry, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
        telling.given_back(entry, SCHEDULE_ATTEMPT_FAILURE, self._place(uid), self._cycle, strategy)

    def update(self, old: Pod, new: Pod, now: int) -> None:
        """A Pod without a node changed; one that is neither queued nor in flight is taken as new."""
        uid = new.uid
        events = pod_scheduling_properties_change(old, new, target=True)
        if uid in self._in_flight:
            for event in events:
                self._in_flight.note(Happening(event, old, new))
            return
        entry = self.get(uid)
        if entry is None:
            self.add(new, now)
            return
        if self._nominations is not None:
            self._nominations.observe(old, new)
        entry.pod = new
        if uid in self._active:
            self._active.put(entry)
        elif uid in self._backoff:
            self._backoff.put(entry)
        else:
            self._retry_after_update(entry, [Happening(event, old, new) for event in events], now)

    def delete(self, uid: str) -> None:
        """A Pod without a node is gone, or has one now."""
        if self._nominations is not None:
            self._nominations.withdraw(uid)
        entry = self._active.remove(uid) or self._backoff.remove(uid) or self._unschedulable.remove(uid)
        if entry is not None:
            self.counts.left(entry)

    def activate(self, uids: Iterable[str], now: int) -> None:
        """Has Pods tried again at once, whatever refused them; those in flight when they come back."""
        for uid in uids:
            from_backoff = uid in self._backoff
            entry = self._backoff.remove(uid) or self._unschedulable.get(uid)
            if entry is not None:
                self._to_active(entry, FORCE_ACTIVATE.label, now, from_backoff=from_backoff)
            elif (flying := self._in_flight.get(uid)) is not None:
                self._in_flight.note(Happening(FORCE_ACTIVATE, None, flying.pod))

    def move(self, happening: Happening, now: int, concerned: Callable[[Pod], bool] | None = None) -> None:
        """Has the Pods (all, or those `concerned`) tried again for which a plugin that refused them answers Queue.

        As kube-scheduler's `MoveAllToActiveOrBackoffQueue`.
        """
        event = happening.event
        if event.is_wildcard:
            candidates = list(self._unschedulable)
        else:
            plugins = self._interest.plugins(event)
            if not plugins:
                return
            found = self._unschedulable.refused_by_any(plugins)
            candidates = [entry for entry in found if not entry.gated or entry.gating_plugin in plugins]
        if concerned is not None:
            candidates = [entry for entry in candidates if concerned(entry.pod)]
        self._move(candidates, happening, now)

    def flush_backoff(self, now: int) -> None:
        """Makes those active whose back-off is over; due every second, on the second."""
        for entry in self._backoff.pop_completed(now):
            self._to_active(entry, BACKOFF_COMPLETE, now, from_backoff=True)

    def flush_unschedulable(self, now: int) -> None:
        """Retries those that have waited in the unschedulable pool for too long; due every 30 seconds."""
        late = now - self._settings.max_unschedulable
        waiting = [entry for entry in self._unschedulable if max(entry.queued_at, entry.flushed_at) < late]
        for entry in waiting:
            entry.flushed, entry.flushed_at = True, now
        if waiting:
            self._move(waiting, Happening(TIMEOUT), now)

    def deadline(self) -> int | None:
        """When `flush_backoff` next has work (unix nanoseconds), None when no Pod backs off."""
        return self._backoff.deadline()

    def backoff_ends(self, entry: QueuedPod) -> int:
        """When the back-off of `entry` is over (unix nanoseconds), 0 when it has none."""
        return self._backoff.expiration(entry)

    def report_failed(self, uid: str) -> None:
        """A PreEnqueue rejection could not be written to the Pod's status: the next one is reported again."""
        entry = self.get(uid) or self._in_flight.get(uid)
        if entry is not None:
            entry.last_pre_enqueue_rejection = ""

    def pending(self) -> dict[str, list[QueuedPod]]:
        """Pods by place: active, backoff, unschedulable, gated (the labels of `scheduler_pending_pods`)."""
        return {
            "active": list(self._active),
            "backoff": list(self._backoff),
            "unschedulable": [entry for entry in self._unschedulable if not entry.gated],
            "gated": [entry for entry in self._unschedulable if entry.gated],
        }

    def lengths(self) -> dict[str, int]:
        """How many Pods are in each place, with the keys of `pending`."""
        gated = self._unschedulable.gated
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable) - gated,
            "gated": gated,
        }

    @property
    def in_flight_events(self) -> Mapping[str, int]:
        """Events and popped Pods that are kept for attempts under way (`scheduler_inflight_events`)."""
        return self._in_flight.counts

    def get(self, uid: str) -> QueuedPod | None:
        """The Pod of that uid, None when it is not queued."""
        return self._active.get(uid) or self._backoff.get(uid) or self._unschedulable.get(uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._active or uid in self._backoff or uid in self._unschedulable

    def _pop(self) -> QueuedPod | None:
        entry = self._active.pop()
        if entry is None and self._settings.pop_from_backoff:
            entry = self._backoff.pop()
            if entry is not None:
                self.counts.came("active", POP_FROM_BACKOFF)
        return entry

    def _strategy_of_returning(self, entry: QueuedPod) -> Strategy:
        best = Strategy.SKIP
        if not entry.rejectors or entry.pod.uid not in self._in_flight:
            return Strategy.AFTER_BACKOFF
        for happening in self._in_flight.since_take_off(entry.pod.uid):
            best = max(best, self._interest.strategy(entry, happening))
            if best is Strategy.IMMEDIATELY or (best and not entry.pending_on):
                break
        return best

    def _retry_after_update(self, entry: QueuedPod, happenings: Iterable[Happening], now: int) -> None:
        for happening in happenings:
            strategy = self._interest.strategy(entry, happening)
            if strategy is not Strategy.SKIP:
                self._requeue(entry, strategy, happening.event.label, now)
                if not entry.gated:
                    telling.moved_by_update(entry, happening.event.label, self._place(entry.pod.uid))
                    return

    def _move(self, entries: Iterable[QueuedPod], happening: Happening, now: int) -> None:
        judge, tells = self._interest.judge(happening), telling.tells_who_is_not_moved()
        for entry in entries:
            strategy = judge(entry)
            if strategy is Strategy.SKIP:
                if tells:
                    telling.not_moved(entry, happening)
                continue
            self._unschedulable.remove(entry.pod.uid)
            self._requeue(entry, strategy, happening.event.label, now)
        self._in_flight.note(happening)

    def _place(self, uid: str) -> str:
        """Where a Pod that was requeued is, as logs say it."""
        return "Active" if uid in self._active else "Backoff" if uid in self._backoff else "Unschedulable"

    def _requeue(self, entry: QueuedPod, strategy: Strategy, event: str, now: int) -> None:
        if strategy is Strategy.SKIP:
            self._to_unschedulable(entry, event)
        elif strategy is Strategy.AFTER_BACKOFF and self._backoff.is_backing_off(entry, now):
            self._to_backoff(entry, event, now, strategy)
        else:
            self._to_active(entry, event, now, strategy)

    def _to_active(
        self,
        entry: QueuedPod,
        event: str,
        now: int,
        strategy: Strategy | None = None,
        *,
        from_backoff: bool = False,
    ) -> None:
        asked_before = from_backoff and self._settings.pop_from_backoff
        if not asked_before and self._is_held_back(entry, event, now, strategy):
            return
        if entry.initial_attempt is None:
            entry.initial_attempt = now
        entry.active_since = now
        self._active.put(entry)
        self.counts.came("active", event, strategy)
        telling.moved(entry, event, "Active")

    def _to_backoff(self, entry: QueuedPod, event: str, now: int, strategy: Strategy) -> None:
        if self._settings.pop_from_backoff and self._is_held_back(entry, event, now, strategy):
            return
        entry.active_since = now
        self._unschedulable.remove(entry.pod.uid)
        self._backoff.put(entry)
        self.counts.came("backoff", event, strategy)
        telling.moved(entry, event, "Backoff")

    def _is_held_back(self, entry: QueuedPod, event: str, now: int, strategy: Strategy | None) -> bool:
        """Asks PreEnqueue, with `entry` taken out of the unschedulable pool, or back in it when it must wait."""
        was_there = self._unschedulable.remove(entry.pod.uid) is not None
        rejected_by = self._pre_enqueue.run(entry, now)
        if rejected_by:
            self.counts.refused_by(rejected_by, entry)
        if not entry.gated:
            return False
        entry.flushed = False
        self._unschedulable.put(entry)
        if not was_there:
            telling.gated(entry, event)
            self.counts.came("unschedulable", event, strategy)
        return True

    def _to_unschedulable(self, entry: QueuedPod, event: str) -> None:
        self._unschedulable.put(entry)
        self.counts.came("unschedulable", event, Strategy.SKIP)
