"""Telling of what found no room: at once, then once a minute for as long as it goes on."""

import asyncio
import logging
import time

_EVERY = 60.0


def in_words(spans: int, decisions: int) -> str:
    """Return what was lost: `7 spans`, `2 decisions` or both."""
    lost = [f"{spans} spans"] if spans or not decisions else []
    return " and ".join([*lost, *([f"{decisions} decisions"] if decisions else [])])


class Overflow:
    """Counts what did not fit into a queue from one warning to the next."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger], remedy: str) -> None:
        """Warn in `log`; `remedy` says what can be done."""
        self._log = log
        self._remedy = remedy
        self._lost = 0
        self._lost_decisions = 0
        self._refused = 0
        self._failing: str | None = None
        self._since = ""
        self._timer: asyncio.TimerHandle | None = None

    def lost(self, spans: int, decisions: int, failing: str | None = None) -> None:
        """Spans and decisions were dropped; `failing`: why the queue can't write to its disk, if that is the reason."""
        self._failing = failing
        self._lost += spans
        self._lost_decisions += decisions
        self._tell_in_time()

    def refused(self, spans: int, failing: str | None = None) -> None:
        """Spans were not taken; `failing` as for those lost."""
        self._failing = failing
        self._refused += spans
        self._tell_in_time()

    def close(self) -> None:
        """Tell of what is left to tell of."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    def _tell_in_time(self) -> None:
        if self._timer is None:
            self._since = time.strftime("%H:%M:%SZ", time.gmtime())
            self._next()

    def _next(self) -> None:
        self._timer = None
        if self._lost or self._lost_decisions or self._refused:
            self._tell()
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self._next)

    def _tell(self) -> None:
        happened = []
        if self._lost or self._lost_decisions:
            happened.append(f"dropped {in_words(self._lost, self._lost_decisions)}")
        if self._refused:
            happened.append(f"refused requests with {self._refused} spans, to be sent again")
        if happened:
            why = f"the queue {self._failing}" if self._failing else "the queue is full"
            remedy = "make room on its disk" if self._failing else self._remedy
            self._log.warning("%s: %s, since %s; %s", why, " and ".join(happened), self._since, remedy)
        self._lost = self._lost_decisions = self._refused = 0
        self._since = time.strftime("%H:%M:%SZ", time.gmtime())
