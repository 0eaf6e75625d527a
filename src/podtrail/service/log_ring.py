"""The last lines of the log, kept in memory for whoever asks for a support bundle."""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from podtrail.service.logs import JsonFormatter

MOST_LINES: Final = 2_000
_MOST_CHARACTERS: Final = 1 << 20
_LONGEST: Final = 8_192


class LogRing(logging.Handler):
    """Holds at most 2,000 lines, and about a million characters of them; the oldest go."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self._lines: deque[str] = deque()
        self._characters = 0
        self._latest: logging.LogRecord | None = None
        self.forgotten = 0
        """Lines that are no longer held."""

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; one that comes by several loggers stands once."""
        if record is self._latest:
            return
        self._latest = record
        line = self.format(record)
        line = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
        self._lines.append(line)
        self._characters += len(line)
        while len(self._lines) > MOST_LINES or self._characters > _MOST_CHARACTERS:
            self._characters -= len(self._lines.popleft())
            self.forgotten += 1

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take what podtrail logs, and what others warn of."""
        loggers = logging.getLogger("podtrail"), logging.getLogger()
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)

    def lines(self) -> list[str]:
        """Return the lines, the oldest first."""
        self.acquire()  # threads of libraries log as well
        try:
            return list(self._lines)
        finally:
            self.release()
