"""`not`: the opposite of one policy."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from podtrail.component import Context
from podtrail.config.mistakes import below
from podtrail.otlp import Decision
from podtrail.state import known_version
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.policies.leaves import Leaf
from podtrail_processors.tail_sampling.voting.evaluator import (
    Evaluator,
    NamedEvaluator,
    PolicyConfig,
    PolicyMemory,
    carry_over,
    restore_parts,
    saved_parts,
)


class Negation(Evaluator):
    """Says yes when its policy says no."""

    def __init__(self, name: str, policy: Evaluator) -> None:
        self._name = name
        self.reads = policy.reads
        self.stateful = policy.stateful
        self.may_fail = policy.may_fail
        self.reason = f"it is not so that {policy.reason}"
        self._policy = policy

    def vote(self, trace: Evidence) -> Decision:
        """Turn the policy's vote round."""
        return "not_sampled" if self._policy.vote(trace) == "sampled" else "sampled"

    def because(self, trace: Evidence) -> str:
        """Tell why the policy said no, where that is read."""
        return self._policy.why_not(trace) if trace.tells else self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell why the policy said yes."""
        return self._policy.because(trace)

    def revote(self, trace: Evidence) -> Decision | None:
        """Turn round what the policy says."""
        again = self._policy.revote(trace)
        return again and ("not_sampled" if again == "sampled" else "sampled")

    def learners(self) -> Sequence[Callable[[Evidence], None]]:
        """Return those of the policy."""
        return self._policy.learners()

    def memories(self) -> Sequence[PolicyMemory]:
        """Return those of the policy."""
        return self._policy.memories()

    def attach(self, context: Context, name: str) -> None:
        """Attach the policy, under its own name below this one's."""
        self._policy.attach(context, f"{name}.{self._name}")

    def save_state(self) -> Any:
        """Return what its policies remember."""
        return saved_parts([self._policy])

    def restore_state(self, version: int, state: Any) -> None:
        """Have its policies remember what was saved."""
        known_version(version, 1)
        restore_parts([self._policy], state)

    def take_over(self, predecessor: Evaluator) -> None:
        """Have the policy go on from the memory of the one before."""
        assert isinstance(predecessor, Negation)
        carry_over([NamedEvaluator(self._name, self._policy)], [NamedEvaluator(predecessor._name, predecessor._policy)])


class Config(PolicyConfig):
    """Settings of `not`."""

    not_sub_policy: Leaf = Field(Leaf(), description="The policy to turn round.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: its part can't be made.
        """
        with below("not_sub_policy"):
            return Negation(self.not_sub_policy.name, self.not_sub_policy.create())
