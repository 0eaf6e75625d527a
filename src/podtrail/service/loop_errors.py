"""What the event loop can tell nobody else: said once in our own log, not again and again."""

import asyncio
import errno
import logging
import time
from typing import Any

_SILENCE_SECONDS = 10.0
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class LoopErrors:
    """An event loop's exception handler."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said = -_SILENCE_SECONDS

    def __call__(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error that no task reports; connections that can't be accepted at most every ten seconds."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _EXHAUSTED):
            self._log.error("%s", context["message"], exc_info=error)
            return
        now = time.monotonic()
        if now - self._said >= _SILENCE_SECONDS:
            self._said = now
            self._log.error("connections have to wait: %s", error.strerror)
