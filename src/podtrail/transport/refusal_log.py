"""Says who was refused: each client's first at once, then one line a minute of it at most, and few of all together."""

import logging
import time
from collections.abc import Callable
from typing import Final

from podtrail.lru import Lru
from podtrail.transport.caller import RemotePeer

_SILENCE_SECONDS: Final = 60.0
_MOST_LINES: Final = 10
"""In that time, however many clients there are."""
_CLIENTS: Final = 1_000
"""That are told apart."""


class RefusalLog:
    """One log of refusals, for each server one."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger], clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `log`; `clock` gives seconds since any moment."""
        self._log = log
        self._clock = clock
        self._told: Lru[str, float] = Lru(_CLIENTS)
        self._begun = clock()
        self._lines = 0
        self._unsaid = 0

    def tell(self, caller: RemotePeer, why: str, what: str = "request") -> None:
        """Say that a request (or a connection) was refused, unless enough was said within the last minute."""
        now = self._clock()
        if now - self._begun >= _SILENCE_SECONDS:
            self._begun, self._lines = now, 0
        last = self._told.get(caller.address)
        if self._lines >= _MOST_LINES or (last is not None and now - last < _SILENCE_SECONDS):
            self._unsaid += 1
            return
        more = f"; {self._unsaid} more were refused since the last line" if self._unsaid else ""
        self._told.put(caller.address, now)
        self._lines += 1
        self._unsaid = 0
        self._log.warning("refused a %s from %s: %s%s", what, caller, why, more)
