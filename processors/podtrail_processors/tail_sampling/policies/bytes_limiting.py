"""`bytes_limiting`: as many traces as a number of bytes a second allows, the first come."""

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.bucket import TokenBucket, burst_of, nothing_comes_back
from podtrail_processors.tail_sampling.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.lenient import Int64
from podtrail_processors.tail_sampling.policy import Block, Policy


class BytesLimiting(Policy):
    """Says yes as long as the bucket has a token for each byte of the trace, as one message of the Collector's.

    It charges every trace it says yes to, also one that another policy keeps anyway: so did the Collector's.
    """

    reads = Reads(size=True)
    stateful = True

    def __init__(self, bytes_per_second: int, burst: int) -> None:
        self.reason = f"it is within {bytes_per_second} bytes a second"
        self._rate = f"{bytes_per_second} bytes a second"
        self._bucket = TokenBucket(bytes_per_second, burst)

    def vote(self, trace: Evidence) -> Decision:
        """Take a token a byte."""
        return "sampled" if self._bucket.take(sum(trace.size), trace.now) else "not_sampled"

    def why_not(self, trace: Evidence) -> str:
        """Tell what did not fit."""
        return f"there was no room for its {sum(trace.size)} bytes or so within {self._rate}"

    def take_over(self, predecessor: Policy) -> None:
        """Go on from what is left of the predecessor's bucket."""
        assert isinstance(predecessor, BytesLimiting)
        self._bucket.take_over(predecessor._bucket)


class Config(Block):
    """Settings of `bytes_limiting`."""

    bytes_per_second: Int64 = Field(0, description="How many bytes are kept a second.")
    burst_capacity: Int64 = Field(
        0, description="How many may be kept at once, and in a single trace; 0: twice `bytes_per_second`."
    )

    def create(self) -> Policy:
        """Return the policy."""
        return BytesLimiting(self.bytes_per_second, burst_of(self.burst_capacity, self.bytes_per_second))

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return nothing_comes_back("bytes_per_second", self.bytes_per_second, self.burst_capacity)
