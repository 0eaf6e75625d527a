"""Attempts that were decided before their root came: policies that look at it could not say yes."""

from typing import Final

from podtrail.lru import Lru
from podtrail.otlp import Verdict, attempt_of
from podtrail.story import duration, several

_MOST: Final = 200_000


class Rootless:
    """Counts traces that were voted on and not kept without their root, which came later."""

    def __init__(self) -> None:
        """Begin with none."""
        self.traces = 0
        self.longest = 0
        """Nanoseconds that the longest of these attempts took."""
        self._without: Lru[bytes, None] = Lru(_MOST)

    def add(self, verdict: Verdict) -> None:
        """Take note of a decision, in the order in which they fall."""
        if verdict.decision != "not_sampled":
            return
        attempt = attempt_of(verdict.groups)
        if not verdict.late:
            if verdict.votes and attempt is None:
                self._without.put(verdict.trace_id, None)
        elif attempt is not None and verdict.trace_id in self._without:
            del self._without[verdict.trace_id]
            self.traces += 1
            self.longest = max(self.longest, attempt.end - attempt.start)

    @property
    def told(self) -> str:
        """What it came to, in words; "" when there was none."""
        if not self.traces:
            return ""
        which = "was decided before its" if self.traces == 1 else "were decided before their"
        return (
            f"{several(self.traces, 'trace')} {which} root came, and not kept: "
            f"hold traces for longer (decision_wait), for attempts took up to {duration(self.longest)}"
        )
