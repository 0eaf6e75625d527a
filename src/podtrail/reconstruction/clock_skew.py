"""By how much a scheduler's clock is ahead of the watch's: what watches show is compared by the scheduler's time."""

from collections import deque
from typing import Final

from podtrail.reconstruction.watch import EventSeen

_MOST: Final = 16
_LEAST: Final = 100_000_000
_REASONS: Final = frozenset(("Scheduled", "FailedScheduling"))


class ClockSkew:
    """Learns from the latest Events of schedulers: each has the scheduler's time, and came at a time of the watch."""

    def __init__(self) -> None:
        self._latest: deque[int] = deque(maxlen=_MOST)
        self.ahead = 0
        """Nanoseconds; 0 where that is not certain: an Event may come late, but not before it was written."""

    def compare(self, seen: EventSeen) -> None:
        """Take an Event; those with whole seconds, or without a time of arrival, show nothing."""
        if seen.reason not in _REASONS or seen.resolution > 1_000 or seen.time == seen.at:
            return
        self._latest.append(seen.at - seen.time)
        ahead = sorted(self._latest)[-2:][0]  # one Event that lies does not count
        self.ahead = ahead if ahead > _LEAST else 0
