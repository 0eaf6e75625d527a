"""A rate limit in the time that it is told."""

from podtrail_scheduler.objects.durations import SECOND


class TokenBucket:
    """`qps` tokens a second, up to `burst` at once; a `qps` of 0 or less limits nothing. Times are nanoseconds."""

    def __init__(self, qps: float, burst: int) -> None:
        self._interval = int(SECOND / qps) if qps > 0 else 0
        self._full_after = self._interval * max(burst, 1)
        self._empty_since = -self._full_after
        """The bucket holds what has flowed in since then, but never more than `burst`."""

    def take(self, now: int) -> bool:
        """Takes a token if there is one."""
        if self.next_at(now) > now:
            return False
        if self._interval:
            self._empty_since = max(self._empty_since, now - self._full_after) + self._interval
        return True

    def next_at(self, now: int) -> int:
        """When there is a token: `now` when there is one now."""
        return max(now, self._empty_since + self._interval)
