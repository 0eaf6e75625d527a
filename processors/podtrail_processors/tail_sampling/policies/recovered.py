"""`recovered`: the attempt that got a Pod its node after others had failed.

It closes the story of a Pod that had to wait. The failed attempts before it were decided before anybody could know:
with `linked_traces` they are brought back from the grace buffer, so that the story is whole; without, keep failures by
a policy of their own. Failures are counted as by `attempts`: by uid, kept or not, or as the scheduler counted them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field

from podtrail.config.types import HOUR, PositiveDuration
from podtrail.otlp import Attempt
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig, PolicyMemory
from podtrail_processors.tail_sampling.voting.learner import FINDINGS_BYTES, Learner
from podtrail_processors.tail_sampling.voting.tries import TRIED_BYTES, Tries
from podtrail_processors.tail_sampling.voting.words import cut, pod_of, times


class Recovery(NamedTuple):
    """How an attempt ended, and how many had failed before it."""

    span_id: bytes
    yes: bool
    pod: str
    result: str
    failures: int


class Recovered(Learner[Recovery]):
    """Says yes to a Pod's first success after enough failures."""

    def __init__(self, min_failures: int, max_pods: int, forget_after: int) -> None:
        super().__init__()
        self.reason = f"its Pod got a node after {times(min_failures, 'failed attempt')} or more"
        self._min_failures = min_failures
        self._tries = Tries(max_pods, forget_after, self.forgot)

    def learn(self, attempt: Attempt, trace: Evidence) -> Recovery:
        """Count it, if it failed."""
        failures = self._tries.count(attempt, trace.cluster, trace.now) - 1
        yes = attempt.result == "Success" and failures >= self._min_failures
        return Recovery(attempt.span_id, yes, pod_of(attempt), cut(attempt.result), failures)

    def told(self, finding: Recovery) -> str:
        """Tell how often it had failed."""
        if finding.result != "Success":
            return f"{finding.pod} has no node yet: the attempt ended {finding.result or 'without a result'}"
        after = f"after {times(finding.failures, 'failed attempt')}" if finding.failures else "at the first attempt"
        fewer = "" if finding.yes else f", fewer than {self._min_failures}"
        return f"{finding.pod} got a node {after}{fewer}"

    finding_shape = Recovery
    memory_shape = tuple[tuple[str, int, int], ...]

    def saved_memory(self) -> Any:
        """Return how often Pods were tried."""
        return self._tries.saved()

    def restore_memory(self, saved: Any) -> None:
        """Know how often Pods were tried."""
        self._tries.restore(saved)

    def memories(self) -> Sequence[PolicyMemory]:
        """Return what it remembers."""
        return (*super().memories(), self._tries)

    def take_over(self, predecessor: Evaluator) -> None:
        """Go on counting."""
        assert isinstance(predecessor, Recovered)
        self._tries.move_in(predecessor._tries)


class Config(PolicyConfig):
    """Settings of `recovered`."""

    min_failures: int = Field(1, ge=1, description="How many attempts must have failed before the one that succeeded.")
    max_pods: int = Field(50_000, ge=1, le=10_000_000, description="How many failing Pods are remembered.")
    forget_after: PositiveDuration = Field(
        HOUR, description="After how long without an attempt a Pod and its failures are forgotten."
    )

    def create(self) -> Evaluator:
        """Return the policy."""
        return Recovered(self.min_failures, self.max_pods, self.forget_after)

    def memory_bound(self) -> int:
        """Return the bytes of what is remembered and of the last findings."""
        return self.max_pods * TRIED_BYTES + FINDINGS_BYTES
