"""Holds requests back as client-go's flowcontrol does, on the event loop's clock."""

import asyncio
import logging
from typing import Final

from .token_bucket import TokenBucket

LONG_WAIT: Final = 1.0
"""Seconds from which a wait is told."""

_SECOND: Final = 1_000_000_000
_log = logging.getLogger(__name__)


class RateLimiter:
    """Lets `qps` requests a second go, up to `burst` at once; a `qps` of 0 or less holds nothing back."""

    def __init__(self, qps: float, burst: int) -> None:
        self._bucket = TokenBucket(qps, burst)

    async def wait(self) -> None:
        """Returns when the next request may be sent."""
        now = int(asyncio.get_running_loop().time() * _SECOND)
        delay = (self._bucket.reserve(now) - now) / _SECOND
        if delay > LONG_WAIT:
            _log.info("Waited before sending request: client-side throttling for %.1f s", delay)
        if delay:
            await asyncio.sleep(delay)
