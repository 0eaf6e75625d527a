"""What a recording would cost if all of it were kept: failures, slow attempts by how slow, the rest."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

from podtrail.backtest.durations import end_of, step_of
from podtrail.otlp import Verdict, attempt_of, raw_span_reader, status_code

FIRST: Final = "first of its kind"
"""The policy whose yes says that a failure is the first of its kind."""


_ERROR: Final = 2
_read = raw_span_reader(("start_time_unix_nano", "end_time_unix_nano", "status"))


def outcome_of(verdict: Verdict) -> tuple[bool, int]:
    """Return whether a span of a trace has failed, and the time from the first start to the last end in nanoseconds."""
    spans = [span for group in verdict.groups for span in _read(group.spans)]
    failed = any(status_code(span.status) == _ERROR for span in spans if span.status)
    starts = [span.start_time_unix_nano for span in spans if span.start_time_unix_nano]
    ends = [span.end_time_unix_nano for span in spans]
    return failed, max(0, max(ends, default=0) - min(starts, default=0)) if starts else 0


@dataclass(slots=True)
class TraceCost:
    """What some traces come to. Spans and bytes are those of all that they stand for."""

    traces: int = 0
    spans: float = 0.0
    bytes: float = 0.0

    def add(self, verdict: Verdict, probability: float) -> None:
        """Add a trace that came with a probability."""
        weight = 1 / probability
        self.traces += 1
        self.spans += weight * verdict.spans
        self.bytes += weight * sum([len(group.spans) for group in verdict.groups])

    def of(self, unit: str) -> float:
        """Return spans or bytes."""
        return self.bytes if unit == "bytes" else self.spans

    def times(self, factor: float) -> "TraceCost":
        """Return the cost of the same traces where so much more leaves."""
        return TraceCost(self.traces, self.spans * factor, self.bytes * factor)

    def __add__(self, other: "TraceCost") -> "TraceCost":
        return TraceCost(self.traces + other.traces, self.spans + other.spans, self.bytes + other.bytes)


@dataclass(slots=True)
class RecordingCosts:
    """Costs of all traces of a recording, by what they are."""

    failed: TraceCost = field(default_factory=TraceCost)
    first: TraceCost = field(default_factory=TraceCost)
    """Of failed attempts, those that were the first of their kind for an hour."""
    others: TraceCost = field(default_factory=TraceCost)
    """Traces that are no attempts."""
    attempts: int = 0
    traces: "RecordingCosts | None" = None
    """The same of traces by their spans' statuses and their length, as long as there is no attempt."""
    _paced: defaultdict[int, TraceCost] = field(default_factory=lambda: defaultdict(TraceCost))
    """Those that succeeded by their length, in steps of 1 %."""

    def add(self, verdict: Verdict, probability: float) -> None:
        """Count a trace that came with a probability."""
        attempt = attempt_of(verdict.groups)
        if attempt is None:
            self.others.add(verdict, probability)
            if not self.attempts:
                self.traces = self.traces or RecordingCosts()
                self.traces._add_trace(verdict, probability)
            return
        self.attempts, self.traces = self.attempts + 1, None
        if attempt.failed:
            self.failed.add(verdict, probability)
            if verdict.votes.get(FIRST) == "sampled":
                self.first.add(verdict, probability)
        else:
            self._paced[step_of(attempt.end - attempt.start)].add(verdict, probability)

    def _add_trace(self, verdict: Verdict, probability: float) -> None:
        failed, length = outcome_of(verdict)
        (self.failed if failed else self._paced[step_of(length)]).add(verdict, probability)

    @property
    def succeeded(self) -> TraceCost:
        """Successful attempts."""
        return sum(self._paced.values(), TraceCost())

    def longer_than(self, threshold: int) -> TraceCost:
        """Return the cost of successful attempts that took longer."""
        return sum((cost for step, cost in self._paced.items() if end_of(step) > threshold), TraceCost())

    def quantile(self, share: float) -> int:
        """Return the time in nanoseconds beyond which the slowest are, those at the quantile with them; 0 of none."""
        counts = Counter({step: cost.traces for step, cost in self._paced.items()})
        rank = share * counts.total()
        for step, count in sorted(counts.items()):
            rank -= count
            if rank <= 0:
                return end_of(step - 1)
        return 0

    def slowest_within(self, unit: str, room: float) -> int | None:
        """Return beyond which time all attempts have room; None when not even the slowest have."""
        threshold = None
        for step, cost in sorted(self._paced.items(), reverse=True):
            room -= cost.of(unit)
            if room < 0:
                return threshold
            threshold = end_of(step - 1)
        return threshold
