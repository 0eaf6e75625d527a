"""When something last came in: what says for how long a source has been silent."""

import time
from typing import Final

SILENT: Final = 30_000_000_000
"""Nanoseconds without anything that came, after which pages say so."""


class LastCame:
    """The moment, by our own clock, whatever age what came is of."""

    def __init__(self) -> None:
        self.at = 0
        """Unix nanoseconds; 0 while nothing has come."""

    def note(self) -> None:
        """Something comes now."""
        self.at = time.time_ns()

    def silent_since(self) -> int:
        """Return since when nothing has come, Unix nanoseconds; 0 where that is not long ago, or nothing ever came."""
        return self.at if self.at and time.time_ns() - self.at >= SILENT else 0
