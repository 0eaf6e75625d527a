"""The client's own throttle, a token bucket as in client-go (flowcontrol)."""

import asyncio
import logging

LONG_WAIT = 1.0
"""Seconds from which a wait is told."""

_log = logging.getLogger(__name__)


class TokenBucket:
    """`qps` requests a second, up to `burst` at once; a negative `qps` limits nothing. Times are seconds."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._at = 0.0

    def reserve(self, now: float) -> float:
        """Takes a token, one of the future if need be, and returns how long to wait for it."""
        if self._qps <= 0:
            return 0.0
        elapsed = max(now - self._at, 0.0)
        self._at = max(now, self._at)
        self._tokens = min(self._tokens + elapsed * self._qps, self._burst) - 1.0
        return max(-self._tokens / self._qps, 0.0)


class RateLimiter:
    """A token bucket on the event loop's clock."""

    def __init__(self, qps: float, burst: int) -> None:
        self._bucket = TokenBucket(qps, burst)

    async def wait(self) -> None:
        """Returns when the next request may be sent."""
        delay = self._bucket.reserve(asyncio.get_running_loop().time())
        if delay > LONG_WAIT:
            _log.info("Waited before sending request: client-side throttling for %.1f s", delay)
        if delay:
            await asyncio.sleep(delay)
