"""`queue_wait`: attempts whose Pod had waited long in the scheduling queue (`scheduler.queue_wait_ms` of the root).

The attempt itself may have been quick: what took long was its turn. A Pod waits behind others when the scheduler can't
keep up, and this keeps the evidence of it. A root that does not tell the wait, or tells nonsense (text, a negative
number), is not kept. The time in back-off or in the unschedulable queue before is not part of it.
"""

from pydantic import Field, model_validator

from podtrail.config.types import PositiveDuration
from podtrail.otlp import Attempt, Decision
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import NO_ATTEMPT, lasting, pod_of


class QueueWait(Evaluator):
    """Says yes when the wait of an attempt's Pod lies above the threshold, and not above the upper one."""

    def __init__(self, threshold: int, upper: int | None) -> None:
        self._threshold = threshold
        self._upper = upper
        self._bound = f"longer than {lasting(threshold)}" + (f", at most {lasting(upper)}" if upper else "")
        self.reason = f"its Pod waited in the queue, {self._bound}"

    def vote(self, trace: Evidence) -> Decision:
        """Look at the wait that the roots tell."""
        return "sampled" if self._late(trace) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell how long the Pod waited."""
        attempt = self._late(trace)
        return f"{_waited(attempt)}, {self._bound}" if attempt else self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell how long the Pod waited."""
        told = [attempt for attempt in trace.attempts if attempt.queue_wait is not None]
        if not told:
            return "it does not tell how long its Pod waited in the queue" if trace.attempts else NO_ATTEMPT
        return f"{_waited(told[0])}, not {self._bound}"

    def _late(self, trace: Evidence) -> Attempt | None:
        for attempt in trace.attempts:
            wait = attempt.queue_wait
            if wait is not None and wait > self._threshold and (self._upper is None or wait <= self._upper):
                return attempt
        return None


def _waited(attempt: Attempt) -> str:
    return f"{pod_of(attempt)} waited {lasting(attempt.queue_wait or 0)} in the queue"


class Config(PolicyConfig):
    """Settings of `queue_wait`."""

    threshold: PositiveDuration | None = Field(None, description="Keep attempts whose Pod waited longer than this.")
    upper_threshold: PositiveDuration | None = Field(None, description="But not those whose Pod waited longer still.")

    @model_validator(mode="after")
    def _upper_is_above(self) -> "Config":
        if self.threshold and self.upper_threshold and self.upper_threshold <= self.threshold:
            raise ValueError("upper_threshold must be longer than threshold")
        return self

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no threshold is given.
        """
        if self.threshold is None:
            raise ValueError("threshold must be given")
        return QueueWait(self.threshold, self.upper_threshold)
