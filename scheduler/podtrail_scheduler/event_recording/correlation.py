"""Which Events are new objects, which belong to a series, and which of these are to be written."""

from podtrail_scheduler.objects.durations import MINUTE

from .event import Event

FINISH = 6 * MINUTE
"""When a series ends that has not been observed again, and a single Event is forgotten."""
MAX_REMEMBERED = 50_000


class Correlation:
    """Remembers recent Events, at most `MAX_REMEMBERED`; times are unix nanoseconds."""

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
