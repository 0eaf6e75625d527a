"""The scheduling queue: active heap, back-off and unschedulable pool (kube-scheduler's `PriorityQueue`).

A refused Pod waits in the unschedulable pool until an event that a plugin which refused it asked for makes that
plugin hopeful, or five minutes are over; then it finishes its back-off and is active again. Events that come while a
Pod is being tried are remembered and looked at when it comes back. A Pod that PreEnqueue holds back is gated: it sits
in the unschedulable pool and flushing does not move it. Times are unix nanoseconds, given by the caller.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from podtrail_scheduler.durations import MINUTE, SECOND
from podtrail_scheduler.framework.status import Status
from podtrail_scheduler.objects import Pod

from .entry import QueuedPod
from .events import TARGET_POD_UPDATE, ClusterEvent, Happening, Hint, HintFunction

INITIAL_BACKOFF = 1 * SECOND
MAX_BACKOFF = 10 * SECOND
MAX_UNSCHEDULABLE = 5 * MINUTE

Hints = Mapping[ClusterEvent, Sequence[tuple[str, HintFunction]]]
PreEnqueue = Callable[[Pod], tuple[str, Status] | None]


class SchedulingQueue:
    """Every Pod that has no node yet and is not being tried is in exactly one place of it."""

    def __init__(self, sort_key: Callable[[QueuedPod], tuple[int, ...]], pre_enqueue: PreEnqueue, hints: Hints) -> None:
        """`pre_enqueue` gives the plugin that holds a Pod back and its status, None when there is none."""
        self._sort_key = sort_key
        self._pre_enqueue = pre_enqueue
        self._hints = hints
        self._order = count()
        self._heap: list[tuple[tuple[int, ...], int, QueuedPod]] = []
        self._active: dict[str, QueuedPod] = {}
        self._backoff: dict[str, QueuedPod] = {}
        self._unschedulable: dict[str, QueuedPod] = {}
        self._in_flight: dict[str, int] = {}
        self._happenings: list[Happening] = []

    def add(self, pod: Pod, now: int) -> None:
        """A Pod without a node was created."""
        self._enqueue(QueuedPod(pod, queued_at=now), now)

    def pop(self) -> QueuedPod | None:
        """The next Pod to try, its attempt counted; call `done` or `give_back` when the attempt is over."""
        while self._heap:
            entry = heapq.heappop(self._heap)[2]
            if self._active.get(entry.pod.uid) is entry:
                del self._active[entry.pod.uid]
                entry.attempts += 1
                self._in_flight[entry.pod.uid] = len(self._happenings)
                return entry
        return None

    def done(self, uid: str) -> None:
        """The attempt of this Pod is over and it does not come back."""
        self._landed(uid)

    def give_back(self, entry: QueuedPod, now: int) -> None:
        """Returns a Pod whose attempt failed; `refused_by`, `pending_on` and `errors` say how."""
        happened = self._landed(entry.pod.uid)
        entry.queued_at = now
        if not entry.refused_by and not entry.pending_on:
            self._backoff[entry.pod.uid] = entry
        elif any(self._is_hopeful(entry, happening) for happening in happened):
            self._requeue(entry, now)
        else:
            self._unschedulable[entry.pod.uid] = entry

    def update(self, pod: Pod, now: int) -> None:
        """A Pod without a node changed; a gated one is asked again whether it may go."""
        uid = pod.uid
        if uid in self._active:
            self._active[uid].pod = pod
        elif uid in self._backoff:
            self._backoff[uid].pod = pod
        elif uid in self._unschedulable:
            entry = self._unschedulable[uid]
            old, entry.pod = entry.pod, pod
            if entry.gated or self._is_hopeful(entry, Happening(TARGET_POD_UPDATE, old, pod)):
                del self._unschedulable[uid]
                self._requeue(entry, now)

    def delete(self, uid: str) -> None:
        """A Pod without a node is gone."""
        for place in (self._active, self._backoff, self._unschedulable):
            place.pop(uid, None)

    def move(self, happening: Happening, now: int) -> None:
        """Something happened: Pods that a plugin is now hopeful about get another attempt."""
        if self._in_flight:
            self._happenings.append(happening)
        hopeful = [
            entry for entry in self._unschedulable.values() if not entry.gated and self._is_hopeful(entry, happening)
        ]
        self._move(hopeful, now)

    def flush_backoff(self, now: int) -> None:
        """Makes those active whose back-off is over; due every second."""
        over = [entry for entry in self._backoff.values() if self.backoff_ends(entry) <= now]
        for entry in sorted(over, key=self.backoff_ends):
            del self._backoff[entry.pod.uid]
            self._enqueue(entry, now)

    def flush_unschedulable(self, now: int) -> None:
        """Retries those that have waited five minutes for an event; due every 30 seconds."""
        waiting = self._unschedulable.values()
        self._move([each for each in waiting if not each.gated and now - each.queued_at > MAX_UNSCHEDULABLE], now)

    def backoff_ends(self, entry: QueuedPod) -> int:
        """When `entry` may be active again: one second after its first failure, doubled each time, at most ten."""
        failures = entry.errors or entry.attempts
        return entry.queued_at + (min(INITIAL_BACKOFF << min(failures - 1, 10), MAX_BACKOFF) if failures else 0)

    def pending(self) -> dict[str, list[QueuedPod]]:
        """Who is where: active, backoff, unschedulable, gated (the labels of `scheduler_pending_pods`)."""
        waiting = self._unschedulable.values()
        return {
            "active": list(self._active.values()),
            "backoff": list(self._backoff.values()),
            "unschedulable": [entry for entry in waiting if not entry.gated],
            "gated": [entry for entry in waiting if entry.gated],
        }

    def __contains__(self, uid: str) -> bool:
        return uid in self._active or uid in self._backoff or uid in self._unschedulable

    def _landed(self, uid: str) -> list[Happening]:
        """What happened since `uid` was popped; forgotten once no attempt under way began before it."""
        began = self._in_flight.pop(uid)
        happened = self._happenings[began:]
        if not self._in_flight:
            self._happenings.clear()
        elif oldest := min(self._in_flight.values()):
            del self._happenings[:oldest]
            self._in_flight = {each: position - oldest for each, position in self._in_flight.items()}
        return happened

    def _is_hopeful(self, entry: QueuedPod, happening: Happening) -> bool:
        concerned = entry.refused_by | entry.pending_on
        return any(
            plugin in concerned and hint(entry.pod, happening) is Hint.QUEUE
            for event, hints in self._hints.items()
            if event.covers(happening.event)
            for plugin, hint in hints
        )

    def _move(self, entries: Iterable[QueuedPod], now: int) -> None:
        for entry in entries:
            del self._unschedulable[entry.pod.uid]
            self._requeue(entry, now)

    def _requeue(self, entry: QueuedPod, now: int) -> None:
        if not entry.pending_on and self.backoff_ends(entry) > now:
            self._backoff[entry.pod.uid] = entry
        else:
            self._enqueue(entry, now)

    def _enqueue(self, entry: QueuedPod, now: int) -> None:
        held = self._pre_enqueue(entry.pod)
        if held is not None:
            plugin, status = held
            entry.gated, entry.refused_by, entry.message = True, frozenset((plugin,)), status.message
            self._unschedulable[entry.pod.uid] = entry
            return
        if entry.gated:
            entry.gated, entry.refused_by, entry.message = False, frozenset(), ""
        entry.active_since = now
        self._active[entry.pod.uid] = entry
        heapq.heappush(self._heap, (self._sort_key(entry), next(self._order), entry))
