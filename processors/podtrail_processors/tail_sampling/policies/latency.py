"""`latency`: traces that took longer than a threshold, from their first start to their last end."""

from collections.abc import Iterable
from operator import attrgetter

from pydantic import Field

from podtrail.config.types import MILLISECOND, WarningPath
from podtrail.otlp import Decision, SpanFields
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policies.lenient import Int64
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import milliseconds, name_of

_START, _END = attrgetter("start_time_unix_nano"), attrgetter("end_time_unix_nano")
_TIMES = frozenset({"start_time_unix_nano", "end_time_unix_nano"})


class Latency(Evaluator):
    """Says yes when, after any span in order of arrival, the trace so far took long enough but not too long.

    As in the Collector, whole milliseconds are compared (cut off towards zero), the lower bound is exclusive, the upper
    one inclusive, and a start of 0 counts as not set. So with an upper bound the order of arrival matters: a trace that
    grows through the range is kept.
    """

    reads = Reads(_TIMES, _TIMES)

    def __init__(self, threshold_ms: int, upper_threshold_ms: int) -> None:
        self.reason = f"it took longer than {threshold_ms} ms"
        if upper_threshold_ms:
            self.reason += f" and at most {upper_threshold_ms} ms"
        self._bounds = self.reason.removeprefix("it took ")
        self.stateful = upper_threshold_ms > 0
        self._threshold_ms = threshold_ms
        self._least = _shortest(threshold_ms + 1)
        self._beyond = _shortest(upper_threshold_ms + 1) if upper_threshold_ms else None

    def vote(self, trace: Evidence) -> Decision:
        """Compare the time the trace took."""
        first, last, sure = trace.extent
        if not sure:
            times = ((span.start_time_unix_nano, span.end_time_unix_nano) for span in trace.detailed)
            return self._vote_in_order(times)
        if self._beyond is None or last - first < self._least:
            return "sampled" if last - first >= self._least else "not_sampled"
        columns = trace.columns
        return self._vote_in_order(zip(columns.start_time_unix_nano, columns.end_time_unix_nano, strict=True))

    def because(self, trace: Evidence) -> str:
        """Tell how long the trace took."""
        first, last, _ = trace.extent
        if self._beyond is not None or not first or not last:
            return self.reason
        return f"it took {(last - first) // MILLISECOND} ms, longer than {self._threshold_ms} ms"

    def why_not(self, trace: Evidence) -> str:
        """Tell how long the trace took, and its longest span."""
        spans = trace.detailed
        took = max(map(_END, spans)) - min(filter(None, map(_START, spans)), default=0)
        slowest = max(spans, key=_length)
        of_one = f"its longest span, {name_of(slowest)}, took {milliseconds(_length(slowest))}"
        return f"it took {milliseconds(took)}, not {self._bounds}; {of_one}"

    def revote(self, trace: Evidence) -> Decision:
        """Vote again, which changes nothing."""
        return self.vote(trace)

    def _vote_in_order(self, times: Iterable[tuple[int, int]]) -> Decision:
        first = last = 0
        for start, end in times:
            if not first or start < first:
                first = start
            last = max(last, end)
            if self._least <= last - first and (self._beyond is None or last - first < self._beyond):
                return "sampled"
        return "not_sampled"


def _length(span: SpanFields) -> int:
    return span.end_time_unix_nano - (span.start_time_unix_nano or span.end_time_unix_nano)


def _shortest(milliseconds: int) -> int:
    """Return the shortest time in nanoseconds that makes as many whole milliseconds."""
    return milliseconds * MILLISECOND if milliseconds > 0 else (milliseconds - 1) * MILLISECOND + 1


class Config(PolicyConfig):
    """Settings of `latency`."""

    threshold_ms: Int64 = Field(0, description="Keep traces that took longer than this, in milliseconds.")
    upper_threshold_ms: Int64 = Field(0, description="But not longer than this, in milliseconds; 0: no limit.")

    def create(self) -> Evaluator:
        """Return the policy."""
        return Latency(self.threshold_ms, self.upper_threshold_ms)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        if not self.upper_threshold_ms:
            return (
                []
                if self.threshold_ms
                else [(("threshold_ms",), "without a threshold it keeps what took 1 ms or more")]
            )
        if self.upper_threshold_ms <= self.threshold_ms:
            return [(("upper_threshold_ms",), "is not above threshold_ms: it keeps nothing")]
        text = "depends on the order in which spans arrive: a trace that grows through the range is kept"
        return [(("upper_threshold_ms",), text)]
