"""`attempts`: Pods that had to be tried at least so often; from that attempt on, every attempt of theirs is kept.

Attempts are counted whether their traces are kept or not, by the Pod's uid (its namespace and name where there is
none), and what the scheduler itself counted (`scheduler.attempts`) holds if it is more. A Pod is forgotten once it has
a node, or when nothing was heard of it for `forget_after`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field

from podtrail.config.types import HOUR, PositiveDuration, WarningPath
from podtrail.otlp import Attempt
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig, PolicyMemory
from podtrail_processors.tail_sampling.voting.learner import FINDINGS_BYTES, Learner
from podtrail_processors.tail_sampling.voting.tries import TRIED_BYTES, Tries
from podtrail_processors.tail_sampling.voting.words import pod_of


class Tried(NamedTuple):
    """How often a Pod was tried, with this attempt."""

    span_id: bytes
    yes: bool
    pod: str
    number: int


class Attempts(Learner[Tried]):
    """Says yes from the n-th attempt of a Pod on."""

    def __init__(self, at_least: int, max_pods: int, forget_after: int) -> None:
        super().__init__()
        self.reason = f"it is at least attempt {at_least} of its Pod"
        self._at_least = at_least
        self._tries = Tries(max_pods, forget_after, self.forgot)

    def learn(self, attempt: Attempt, trace: Evidence) -> Tried:
        """Count it."""
        number = self._tries.count(attempt, trace.cluster, trace.now)
        return Tried(attempt.span_id, number >= self._at_least, pod_of(attempt), number)

    def told(self, finding: Tried) -> str:
        """Tell which attempt it is."""
        if finding.yes:
            return f"attempt {finding.number} of {finding.pod}; kept from attempt {self._at_least} on"
        return f"attempt {finding.number} of {finding.pod}, fewer than {self._at_least}"

    finding_shape = Tried
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
        assert isinstance(predecessor, Attempts)
        self._tries.move_in(predecessor._tries)


class Config(PolicyConfig):
    """Settings of `attempts`."""

    min_attempts: int = Field(0, ge=0, description="From which attempt of a Pod on its attempts are kept.")
    max_pods: int = Field(50_000, ge=1, le=10_000_000, description="How many Pods are remembered between attempts.")
    forget_after: PositiveDuration = Field(
        HOUR, description="After how long without an attempt a Pod is forgotten, so that it counts from one again."
    )

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no number is given.
        """
        if not self.min_attempts:
            raise ValueError("min_attempts must be given, at least 1")
        return Attempts(self.min_attempts, self.max_pods, self.forget_after)

    def memory_bound(self) -> int:
        """Return the bytes of what is remembered and of the last findings."""
        return self.max_pods * TRIED_BYTES + FINDINGS_BYTES

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return [(("min_attempts",), "from 1 on it keeps every attempt")] if self.min_attempts == 1 else []
