"""`span_count`: traces by their number of spans."""

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail.otlp import Decision
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.policies.lenient import Int32
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig


class SpanCount(Evaluator):
    """Says yes when the number of spans lies between the bounds, both inclusive."""

    def __init__(self, least: int, most: int) -> None:
        self.reason = f"it has {least} spans or more" + (f", at most {most}" if most else "")
        self.stateful = most > 0
        self._least = least
        self._most = most or None

    def vote(self, trace: Evidence) -> Decision:
        """Compare the number of spans."""
        count = trace.total_spans
        return "sampled" if count >= self._least and (self._most is None or count <= self._most) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell the number."""
        return f"it has {self._compared(trace)}"

    def why_not(self, trace: Evidence) -> str:
        """Tell the number."""
        return f"it has {self._compared(trace)}"

    def revote(self, trace: Evidence) -> Decision:
        """Vote again, which changes nothing."""
        return self.vote(trace)

    def _compared(self, trace: Evidence) -> str:
        count = trace.total_spans
        spans = f"{count} span{'' if count == 1 else 's'}"
        if count < self._least:
            return f"{spans}, fewer than {self._least}"
        if self._most is not None and count > self._most:
            return f"{spans}, more than {self._most}"
        return f"{spans}, at least {self._least}" + (f" and at most {self._most}" if self._most else "")


class Config(PolicyConfig):
    """Settings of `span_count`."""

    min_spans: Int32 = Field(0, description="Keep traces of at least so many spans.")
    max_spans: Int32 = Field(0, description="And of at most so many; 0: no limit.")

    def create(self) -> Evaluator:
        """Return the policy."""
        return SpanCount(self.min_spans, self.max_spans)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        if 0 < self.max_spans < self.min_spans:
            return [(("max_spans",), "is less than min_spans: it keeps nothing")]
        return []
