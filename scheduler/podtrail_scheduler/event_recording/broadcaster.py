"""Writes Events in the background, so many at once, with retries; what can't be written is counted."""

from collections import Counter, deque
from typing import Protocol

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.clock import SchedulerClock
from podtrail_scheduler.objects import ApiObject
from podtrail_scheduler.objects.durations import MINUTE, SECOND

from .event import Event, ObjectReference, truncated

FINISH = 6 * MINUTE
"""When a series ends that has not been observed again, and a single Event is forgotten."""
MAX_REMEMBERED = 50_000


class Correlation:
    """Says which Events are new objects, which belong to a series, and which of these are to be written.

    Remembers recent Events, at most `MAX_REMEMBERED`; times are unix nanoseconds.
    """

    def __init__(self) -> None:
        self._events: dict[tuple[object, ...], Event] = {}

    def observe(self, event: Event, now: int) -> Event | None:
        """What is to be written of it: the Event itself, a series that begins, or nothing yet."""
        known = self._events.get(event.key)
        if known is None:
            if len(self._events) >= MAX_REMEMBERED:
                del self._events[next(iter(self._events))]
            self._events[event.key] = event
            return event
        repeated = self._events[event.key] = known.repeated(now)
        return repeated if known.series is None else None

    def finish(self, now: int) -> list[Event]:
        """Forgets what is over; returns the series among them, whose counts are to be written."""
        over = [event for event in self._events.values() if _last_seen(event) < now - FINISH]
        for event in over:
            del self._events[event.key]
        return [event for event in over if event.series is not None]

    def series(self) -> list[Event]:
        """The series that go on, whose counts are to be written so that they don't expire."""
        return [event for event in self._events.values() if event.series is not None]

    def __len__(self) -> int:
        return len(self._events)


def _last_seen(event: Event) -> int:
    return event.event_time if event.series is None else event.series.last_observed_time


MAX_QUEUED = 1000
"""Events that wait to be written at most, and as many that wait to be tried again."""
MAX_TRIES = 12
RETRY = 10 * SECOND
REFRESH = 30 * MINUTE
PARALLELISM = 8


class EventSink(Protocol):
    """Where Events are written."""

    async def create_event(self, event: Event) -> None:
        """Creates the Event.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        ...

    async def patch_event(self, event: Event) -> None:
        """Writes the series (count, last time) of an Event that exists.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        ...


class EventBroadcaster:
    """All recorders of a scheduler write through one; `dropped` counts by reason what is lost."""

    def __init__(self, sink: EventSink, clock: SchedulerClock) -> None:
        self._sink = sink
        self._clock = clock
        self._correlation = Correlation()
        self._queue: deque[Event] = deque()
        self._writing = 0
        self._retrying = 0
        self._ticks = False
        self._refreshed = clock.now()
        self.dropped: Counter[str] = Counter({"queue_full": 0, "rejected": 0, "retries_exhausted": 0})

    def recorder(self, controller: str, host: str) -> "EventRecorder":
        """The recorder of one profile."""
        return EventRecorder(self, self._clock, controller, f"{controller}-{host}")

    def record(self, event: Event) -> None:
        """Takes an Event and returns at once."""
        now = self._clock.now()
        to_write = self._correlation.observe(event, now)
        if to_write is not None:
            self._enqueue(to_write)
        if not self._ticks:
            self._ticks = True
            self._clock.spawn(self._tick())

    def _enqueue(self, event: Event) -> None:
        if len(self._queue) >= MAX_QUEUED:
            self.dropped["queue_full"] += 1
            return
        self._queue.append(event)
        if self._writing < PARALLELISM:
            self._writing += 1
            self._clock.spawn(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write(self._queue.popleft())
        finally:
            self._writing -= 1

    async def _write(self, event: Event) -> None:
        try:
            await self._send(event)
        except ApiError as error:
            if not _may_help(error, event):
                self.dropped["rejected"] += 1
            elif self._retrying >= MAX_QUEUED:
                self.dropped["queue_full"] += 1
            else:
                self._retrying += 1
                self._clock.spawn(self._retry(event))

    async def _retry(self, event: Event) -> None:
        """Tries again, a while apart, without holding up the others."""
        lost = "retries_exhausted"
        for _ in range(MAX_TRIES - 1):
            await self._clock.sleep(RETRY)
            try:
                await self._send(event)
            except ApiError as error:
                if not _may_help(error, event):
                    lost = "rejected"
                    break
            else:
                lost = ""
                break
        self._retrying -= 1
        if lost:
            self.dropped[lost] += 1

    async def _send(self, event: Event) -> None:
        """A series is patched; when its object is gone, or not there yet, it is created."""
        if event.series is not None:
            try:
                await self._sink.patch_event(event)
            except ApiError as error:
                if error.reason != "NotFound":
                    raise
            else:
                return
        await self._sink.create_event(event)

    async def _tick(self) -> None:
        """As long as anything is remembered: ends series, and writes those that go on now and then."""
        while len(self._correlation):
            await self._clock.sleep(FINISH)
            now = self._clock.now()
            for event in self._correlation.finish(now):
                self._enqueue(event)
            if now - self._refreshed >= REFRESH:
                self._refreshed = now
                for event in self._correlation.series():
                    self._enqueue(event)
        self._ticks = False


def _may_help(error: ApiError, event: Event) -> bool:
    """Whether writing again may: no answer, throttled, or a series whose object was created at the same time."""
    return not error.code or error.code == 429 or (error.reason == "AlreadyExists" and event.series is not None)


class EventRecorder:
    """Makes the Events of one profile; call it as the `event` of a Handle."""

    def __init__(self, broadcaster: EventBroadcaster, clock: SchedulerClock, controller: str, instance: str) -> None:
        self._broadcaster = broadcaster
        self._clock = clock
        self._controller = controller
        self._instance = instance

    def __call__(
        self, regarding: ApiObject, related: ApiObject | None, type: str, reason: str, action: str, note: str
    ) -> None:
        """Records an Event about `regarding`; `type` is Normal or Warning, a long note is cut."""
        self._broadcaster.record(
            Event(
                ObjectReference.to(regarding),
                None if related is None else ObjectReference.to(related),
                type,
                reason,
                action,
                truncated(note),
                self._controller,
                self._instance,
                self._clock.now(),
            )
        )
