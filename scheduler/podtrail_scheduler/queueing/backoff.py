"""The back-off queue: Pods that may soon be tried again (kube-scheduler's `backoffQ`, KEP-5142).

With `pop_from_backoff` (the feature gate SchedulerPopFromBackoffQ) an idle scheduler tries refused Pods before their
back-off is over. Expirations are then cut to whole seconds, within which Pods are ordered as in the active queue. Pods
that failed with an error are apart and wait to the end.
"""

from collections.abc import Callable, Iterator

from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.objects.durations import SECOND

from .heap import EntryHeap, Key

WINDOW = 1 * SECOND
"""Expirations are ordered by whole windows, and whole windows are flushed at once."""


class BackoffQueue:
    """Times are unix nanoseconds; a `maximum` of 0 is no back-off at all."""

    def __init__(
        self, initial: int, maximum: int, sort_key: Callable[[QueuedPod], Key], *, pop_from_backoff: bool
    ) -> None:
        self._initial = initial
        self._maximum = maximum
        self._window = WINDOW if pop_from_backoff else 1
        if pop_from_backoff:
            self._refused = EntryHeap(lambda entry: (self.expiration(entry), *sort_key(entry)))
        else:
            self._refused = EntryHeap(lambda entry: (self.expiration(entry),))
        self._failed = EntryHeap(lambda entry: (self.expiration(entry),))

    def expiration(self, entry: QueuedPod) -> int:
        """When the back-off of `entry` is over (unix nanoseconds); 0 when it has none."""
        count = entry.errors or entry.unschedulable_count
        if not self._maximum or not count:
            return 0
        if entry.backoff_expiration is None:
            ends = entry.queued_at + self._duration(count)
            entry.backoff_expiration = ends - ends % self._window
        return entry.backoff_expiration

    def is_backing_off(self, entry: QueuedPod, now: int) -> bool:
        """Whether `entry` must still wait; it does so to the end of the window in which its back-off ends."""
        return self.expiration(entry) >= now - now % self._window

    def _duration(self, count: int) -> int:
        shift = count - 1
        return self._maximum if self._initial > self._maximum >> shift else self._initial << shift

    def put(self, entry: QueuedPod) -> None:
        """Adds a Pod, or finds its place anew."""
        here, there = (self._refused, self._failed) if entry.rejectors else (self._failed, self._refused)
        there.remove(entry.pod.uid)
        here.put(entry)

    def pop(self) -> QueuedPod | None:
        """Takes out the refused Pod that is next, whether or not its back-off is over."""
        return self._refused.pop()

    def pop_completed(self, now: int) -> list[QueuedPod]:
        """Takes out all whose back-off is over."""
        completed = []
        for heap in (self._refused, self._failed):
            while (entry := heap.peek()) is not None and not self.is_backing_off(entry, now):
                heap.pop()
                completed.append(entry)
        return completed

    def deadline(self) -> int | None:
        """When `pop_completed` next has something (unix nanoseconds), None when the queue is empty."""
        firsts = [entry for heap in (self._refused, self._failed) if (entry := heap.peek()) is not None]
        return min((self.expiration(entry) + self._window for entry in firsts), default=None)

    def remove(self, uid: str) -> QueuedPod | None:
        """Takes the Pod of that uid out, None when there is none."""
        return self._refused.remove(uid) or self._failed.remove(uid)

    def get(self, uid: str) -> QueuedPod | None:
        """The Pod of that uid, None when there is none."""
        return self._refused.get(uid) or self._failed.get(uid)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._failed

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._refused or uid in self._failed
