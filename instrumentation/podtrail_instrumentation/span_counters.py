"""Counts of finished spans, exported and lost by reason: as metrics, and as lines of the log."""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_AGAIN = 60.0
"""Seconds between two lines about lost spans."""
_REASONS = ("queue_full", "export_failed", "rejected", "shutdown")

_logger = logging.getLogger(__name__)


@dataclass
class SpanCounters:
    """Finished sampled spans: `started = exported + lost + still waiting`."""

    exported: int = 0
    lost: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_REASONS, 0)))
    """By reason: queue_full, export_failed, rejected (by the collector, which took others) and shutdown.

    All are there from the start, so that the report can read while another thread counts.
    """
    problem: str = ""
    """What went wrong with the last export that failed."""

    def samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        """Name, labels and value of each counter, as they are exposed (KEP-5927); an error is a loss, too."""
        yield "scheduler_tracing_spans_exported_total", {"result": "success"}, self.exported
        failed = self.lost["export_failed"] + self.lost["rejected"]
        yield "scheduler_tracing_spans_exported_total", {"result": "error"}, failed
        for reason in _REASONS:
            yield "scheduler_tracing_spans_dropped_total", {"reason": reason}, self.lost[reason]


class LossReport:
    """Says what was lost: at once, and then what has come to it once a minute. Times are seconds of any clock."""

    def __init__(self, counters: SpanCounters) -> None:
        self._counters = counters
        self._said: Counter[str] = Counter()
        self._next = 0.0

    def say(self, now: float, *, last: bool = False) -> None:
        """Says it, if it is time, or if there will be no other."""
        lost = self._counters.lost - self._said
        if not lost or (now < self._next and not last):
            return
        reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(lost.items()))
        problem = f"; the last problem: {self._counters.problem}" if self._counters.problem else ""
        _logger.warning("%d spans were lost (%s)%s", lost.total(), reasons, problem)
        self._said += lost
        self._next = now + _AGAIN
