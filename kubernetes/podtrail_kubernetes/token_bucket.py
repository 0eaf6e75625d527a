"""A rate limit in the time that it is told: the token bucket of client-go's flowcontrol, without a clock."""

from typing import Final

_SECOND: Final = 1_000_000_000


class TokenBucket:
    """Gives `qps` tokens a second, up to `burst` at once; a `qps` of 0 or less limits nothing. Times are in ns."""

    def __init__(self, qps: float, burst: int) -> None:
        self._interval = int(_SECOND / qps) if qps > 0 else 0
        self._full_after = self._interval * max(burst, 1)
        self._empty_since = -self._full_after
        """The bucket holds what has flowed in since then, but never more than `burst`."""

    def next_at(self, now: int) -> int:
        """Returns when there is a token: `now` when there is one now."""
        return max(now, self._empty_since + self._interval)

    def take(self, now: int) -> bool:
        """Takes a token if there is one; returns whether there was."""
        if self.next_at(now) > now:
            return False
        self.reserve(now)
        return True

    def reserve(self, now: int) -> int:
        """Takes a token, one of the future if need be; returns when it is there."""
        at = self.next_at(now)
        if self._interval:
            self._empty_since = max(self._empty_since, now - self._full_after) + self._interval
        return at
