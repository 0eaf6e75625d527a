"""`bytes_limiting`: as many traces as a number of bytes a second allows."""

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policies.lenient import Int64
from podtrail_processors.tail_sampling.voting.budget import Budgeted
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.limiter import burst_of, nothing_comes_back


class BytesLimiting(Budgeted):
    """Says yes as long as the bucket has a token for each byte of the trace, as one message of the Collector's.

    The first come get them. With the gate `usetracestate`, traces that fall due within a second are judged together at
    its end: tokens go to those of highest randomness, and the threshold that follows is told in their trace states
    (`ot=th:…`); within `and` that is among the traces that its other parts say yes to. Within `not`, `drop` and
    `composite` it is always the first come.

    It charges every trace it says yes to, also one that another policy keeps anyway: so did the Collector's.
    """

    reads = Reads(size=True)

    def __init__(self, bytes_per_second: int, burst: int) -> None:
        super().__init__(bytes_per_second, burst, "bytes")

    def cost(self, trace: Evidence) -> int:
        """Return a token a byte."""
        return sum(trace.size)

    def why_not(self, trace: Evidence) -> str:
        """Tell what did not fit."""
        return f"there was no room for its {self.cost(trace)} bytes or so within {self._rate}"


class Config(PolicyConfig):
    """Settings of `bytes_limiting`."""

    bytes_per_second: Int64 = Field(0, description="How many bytes are kept a second.")
    burst_capacity: Int64 = Field(
        0, description="How many may be kept at once, and in a single trace; 0: twice `bytes_per_second`."
    )

    def create(self) -> Evaluator:
        """Return the policy."""
        return BytesLimiting(self.bytes_per_second, burst_of(self.burst_capacity, self.bytes_per_second))

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return nothing_comes_back("bytes_per_second", self.bytes_per_second, self.burst_capacity)
