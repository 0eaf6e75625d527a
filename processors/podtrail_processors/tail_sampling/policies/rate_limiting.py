"""`rate_limiting`: as many traces as a number of spans a second allows, the first come."""

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.bucket import TokenBucket, burst_of, nothing_comes_back
from podtrail_processors.tail_sampling.evidence import Evidence
from podtrail_processors.tail_sampling.lenient import Int64
from podtrail_processors.tail_sampling.policy import Block, Policy


class RateLimiting(Policy):
    """Says yes as long as the bucket has a token for each span of the trace.

    It charges every trace it says yes to, also one that another policy keeps anyway: so did the Collector's.
    """

    stateful = True

    def __init__(self, spans_per_second: int, burst: int) -> None:
        self.reason = f"it is within {spans_per_second} spans a second"
        self._rate = f"{spans_per_second} spans a second"
        self._bucket = TokenBucket(spans_per_second, burst)

    def vote(self, trace: Evidence) -> Decision:
        """Take a token a span."""
        return "sampled" if self._bucket.take(trace.total_spans, trace.now) else "not_sampled"

    def why_not(self, trace: Evidence) -> str:
        """Tell what did not fit."""
        return f"there was no room for its {trace.total_spans} spans within {self._rate}"

    def take_over(self, predecessor: Policy) -> None:
        """Go on from what is left of the predecessor's bucket."""
        assert isinstance(predecessor, RateLimiting)
        self._bucket.take_over(predecessor._bucket)


class Config(Block):
    """Settings of `rate_limiting`."""

    spans_per_second: Int64 = Field(0, description="How many spans are kept a second.")
    burst_capacity: Int64 = Field(
        0, description="How many may be kept at once, and in a single trace; 0: twice `spans_per_second`."
    )

    def create(self) -> Policy:
        """Return the policy."""
        return RateLimiting(self.spans_per_second, burst_of(self.burst_capacity, self.spans_per_second))

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return nothing_comes_back("spans_per_second", self.spans_per_second, self.burst_capacity)
