"""Which call is made next, and what becomes of two for the same Pod (kube-scheduler's `callQueue`, and delays).

Pure: time is an argument, sending is somebody else's.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from podtrail_scheduler.objects import Pod

from .calls import APICall, CallType, Known, PodStatusPatch


class CallOutcome(Enum):
    """What became of a call."""

    EXECUTED = "executed"
    FAILED = "failed"
    SKIPPED = "a more relevant call is already enqueued for this object"
    OVERWRITTEN = "a call for the same object took its place"
    NO_OP = "it has no effect"


OnFinish = Callable[[CallOutcome, Exception | None], None]


def _nobody(outcome: CallOutcome, error: Exception | None) -> None:
    """Does nothing: nobody waits for the call."""


@dataclass(slots=True, eq=False)
class QueuedCall:
    """A call, and who wants to know how it ended."""

    call: APICall
    on_finish: OnFinish = _nobody
    tries: int = 0
    due: int = 0
    """When a delayed call is to be made."""


class _StatusWritten(NamedTuple):
    before: Known | None
    after: Known | None


class CallQueue:
    """Calls by uid of their Pod: at most one in flight, one that waits and one that is delayed."""

    def __init__(self) -> None:
        self._waiting: dict[str, QueuedCall] = {}
        self._order: dict[CallType, deque[str]] = {CallType.POD_BINDING: deque(), CallType.POD_STATUS_PATCH: deque()}
        self._queued: dict[str, CallType] = {}
        self._in_flight: dict[str, QueuedCall] = {}
        self._delayed: dict[str, QueuedCall] = {}
        self._dues: list[tuple[int, str]] = []
        self._written: dict[str, dict[str, _StatusWritten]] = {}

    def add(self, queued: QueuedCall) -> None:
        """Takes a call to be made as soon as may be; its `on_finish` is told when it is not made after all."""
        call, uid = queued.call, queued.call.pod.uid
        ahead = self._waiting.get(uid) or self._in_flight.get(uid)
        if ahead is not None and call.type.relevance < ahead.call.type.relevance:
            queued.on_finish(CallOutcome.SKIPPED, None)
            return
        self._overwrite_delayed(queued)
        waiting = self._waiting.get(uid)
        if waiting is not None:
            if waiting.call.type is call.type:
                call.take_over(waiting.call)
            waiting.on_finish(CallOutcome.OVERWRITTEN, None)
        if uid not in self._in_flight and call.is_no_op(self._believed):
            self._waiting.pop(uid, None)
            queued.on_finish(CallOutcome.NO_OP, None)
            return
        self._waiting[uid] = queued
        if uid not in self._in_flight:
            self._enqueue(uid, call.type)

    def add_delayed(self, queued: QueuedCall, due: int) -> None:
        """Takes a call to be made at `due`, or when the one that it replaces would have been: no delay begins anew."""
        call, uid = queued.call, queued.call.pod.uid
        older = self._delayed.get(uid)
        alone = older is None and uid not in self._waiting and uid not in self._in_flight
        if alone and call.is_no_op(self._believed):
            queued.on_finish(CallOutcome.NO_OP, None)
            return
        queued.due = due
        if older is not None:
            queued.due = older.due
            call.take_over(older.call)
            older.on_finish(CallOutcome.OVERWRITTEN, None)
        else:
            heapq.heappush(self._dues, (due, uid))
        self._delayed[uid] = queued

    def expire(self, now: int) -> None:
        """Delayed calls that are due wait like all others from now on."""
        while (due := self.deadline()) is not None and due <= now:
            _, uid = heapq.heappop(self._dues)
            self.add(self._delayed.pop(uid))

    def deadline(self) -> int | None:
        """When the first delayed call is due (unix nanoseconds), None when none is delayed."""
        while self._dues:
            due, uid = self._dues[0]
            queued = self._delayed.get(uid)
            if queued is not None and queued.due == due:
                return due
            heapq.heappop(self._dues)
        return None

    def pop(self, may: Callable[[CallType], bool]) -> QueuedCall | None:
        """The next call to make of a type that `may` be made now; call `finish` when it is over.

        Bindings are first, within a type who came first.
        """
        for kind, order in self._order.items():
            while order and (order[0] not in self._waiting or self._queued.get(order[0]) is not kind):
                self._leave_order(kind)
            if order and may(kind):
                uid = order[0]
                self._leave_order(kind)
                queued = self._in_flight[uid] = self._waiting.pop(uid)
                queued.call.settle(self._believed)
                return queued
        return None

    def finish(self, queued: QueuedCall, error: Exception | None, *, again: bool = False) -> bool:
        """A popped call is over; one for the same Pod that came meanwhile is next.

        `again`: it failed and is worth another try. Returns whether it is to be added again: a newer call, if there is
        one, does what it did not instead.
        """
        call, uid = queued.call, queued.call.pod.uid
        del self._in_flight[uid]
        if error is None and isinstance(call, PodStatusPatch):
            self._note_written(call)
        newer = self._waiting.get(uid) or self._delayed.get(uid)
        if again and newer is not None and newer.call.type is call.type:
            newer.call.take_over(call)
        successor = self._waiting.get(uid)
        if successor is not None:
            if successor.call.is_no_op(self._believed):
                del self._waiting[uid]
                successor.on_finish(CallOutcome.NO_OP, None)
            else:
                self._enqueue(uid, successor.call.type)
        queued.on_finish(CallOutcome.FAILED if error else CallOutcome.EXECUTED, error)
        return again and newer is None

    def sync(self, pod: Pod) -> None:
        """The watch shows `pod`: what it has already need not be written."""
        written = self._written.get(pod.uid, {})
        for name in [name for name, each in written.items() if pod.conditions.get(name) != each.before]:
            del written[name]
        if not written:
            self._written.pop(pod.uid, None)
        for calls in (self._waiting, self._delayed):
            if (queued := calls.get(pod.uid)) is not None:
                queued.call.sync(pod)
        waiting = self._waiting.get(pod.uid)
        if waiting is not None and pod.uid not in self._in_flight and waiting.call.is_no_op(self._believed):
            del self._waiting[pod.uid]
            waiting.on_finish(CallOutcome.NO_OP, None)

    def forget(self, uid: str) -> None:
        """The Pod is gone or bound: calls for it that were not made yet are not made."""
        self._written.pop(uid, None)
        for calls in (self._waiting, self._delayed):
            if (queued := calls.pop(uid, None)) is not None:
                queued.on_finish(CallOutcome.NO_OP, None)

    def pending(self) -> Counter[CallType]:
        """How many calls wait, delayed ones included, by type (`scheduler_pending_async_api_calls`)."""
        return Counter(queued.call.type for calls in (self._waiting, self._delayed) for queued in calls.values())

    @property
    def waits(self) -> bool:
        """Whether a call could be made now but for limits."""
        return bool(self._queued)

    @property
    def in_flight(self) -> int:
        """How many calls are being made."""
        return len(self._in_flight)

    def _enqueue(self, uid: str, kind: CallType) -> None:
        if self._queued.get(uid) is not kind:
            self._queued[uid] = kind
            self._order[kind].append(uid)

    def _leave_order(self, kind: CallType) -> None:
        uid = self._order[kind].popleft()
        if self._queued.get(uid) is kind:
            del self._queued[uid]

    def _overwrite_delayed(self, queued: QueuedCall) -> None:
        """A delayed patch is not made when `queued` says something else; what that says nothing about is."""
        older = self._delayed.get(queued.call.pod.uid)
        if older is None:
            return
        call, delayed = queued.call, older.call
        if isinstance(call, PodStatusPatch) and isinstance(delayed, PodStatusPatch):
            if not call.conditions_touched & delayed.conditions_touched:
                if call.nominated_node is not None:
                    delayed.nominated_node = None
                return
            call.take_over(delayed)
        del self._delayed[call.pod.uid]
        older.on_finish(CallOutcome.OVERWRITTEN, None)

    def _believed(self, pod: Pod, name: str) -> Known | None:
        written = self._written.get(pod.uid, {}).get(name)
        return pod.conditions.get(name) if written is None else written.after

    def _note_written(self, call: PodStatusPatch) -> None:
        """Remembers conditions until the watch shows that they have changed."""
        for name, condition in call.conditions.items():
            after = None if condition is None else (condition.status, condition.reason, condition.message)
            before = call.pod.conditions.get(name)
            if after != before:
                self._written.setdefault(call.pod.uid, {})[name] = _StatusWritten(before, after)
