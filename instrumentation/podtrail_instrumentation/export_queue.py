"""Finished spans that wait to be exported, an attempt at a time: its spans are exported together or lost together.

The spans of a trace that began here are held until its root has ended, which is then the last of them. What has been
held for a whole period leaves before the root, so that an attempt that waits for minutes (for a permit, for a volume)
is seen while it does. A part of the room is kept for the rest of such attempts, their roots among it: when the queue
is full, those of which nothing has left yet are lost, each as a whole.
"""

from collections import deque
from weakref import WeakValueDictionary

from opentelemetry.sdk.trace import ReadableSpan

from .recorded import LocalTrace, RecordedSpan

_KEPT_FOR_BEGUN = 8
"""One of so many places is kept for the rest of attempts that have begun to leave."""


class WaitingSpans:
    """Bounded by a number of spans; whoever uses it holds a lock."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limit_for_new = limit - limit // _KEPT_FOR_BEGUN
        self._open: WeakValueDictionary[int, LocalTrace] = WeakValueDictionary()
        self._held: dict[LocalTrace, None] = {}
        self._ready: deque[list[ReadableSpan]] = deque()
        self._period = 0
        self.count = 0
        """How many spans wait."""
        self.ready = 0
        """How many of them may leave; the others wait for their roots."""

    def begin(self, root: RecordedSpan) -> None:
        """A root has started: what the SDK itself makes below it is found by its trace id."""
        self._open[root.trace_id] = root.whole

    def add(self, span: ReadableSpan, trace_id: int) -> int:
        """A span has ended. Returns how many are lost by that, with those of its attempt that were held."""
        whole = span.whole if isinstance(span, RecordedSpan) else self._open.get(trace_id)
        if whole is None:
            return self._add_alone(span, self._limit_for_new)
        if whole.lost:
            return 1
        if whole.over:
            return self._add_alone(span, self._limit)
        if self.count >= self._limit_for_new and not (whole.begun and self.count < self._limit):
            return self._lose(whole) + 1
        if not whole.finished:
            whole.since = self._period
            self._held[whole] = None
        whole.finished.append(span)
        self.count += 1
        if isinstance(span, RecordedSpan) and span.parent_span is None:
            whole.over = True
            self._release(whole)
        return 0

    def end_period(self) -> None:
        """What has been held for a whole period may leave."""
        for whole in [each for each in self._held if each.since < self._period]:
            whole.begun = True
            self._release(whole)
        self._period += 1

    def release_all(self) -> None:
        """All that is held may leave."""
        for whole in list(self._held):
            whole.begun = True
            self._release(whole)

    def take(self, limit: int) -> list[ReadableSpan]:
        """Removes at most `limit` spans that may leave; no attempt is divided that fits into as many."""
        taken: list[ReadableSpan] = []
        while self._ready and (not taken or len(taken) + len(self._ready[0]) <= limit):
            taken += self._ready.popleft()
        if len(taken) > limit:
            self._ready.appendleft(taken[limit:])
            del taken[limit:]
        self.ready -= len(taken)
        self.count -= len(taken)
        return taken

    def clear(self) -> int:
        """Removes everything; returns how much it was."""
        self.release_all()
        return len(self.take(self.count))

    def _add_alone(self, span: ReadableSpan, limit: int) -> int:
        if self.count >= limit:
            return 1
        self._ready.append([span])
        self.count += 1
        self.ready += 1
        return 0

    def _release(self, whole: LocalTrace) -> None:
        spans, whole.finished = whole.finished, []
        del self._held[whole]
        self._ready.append(spans)
        self.ready += len(spans)

    def _lose(self, whole: LocalTrace) -> int:
        spans, whole.finished = whole.finished, []
        self._held.pop(whole, None)
        self.count -= len(spans)
        whole.lost = True
        return len(spans)
