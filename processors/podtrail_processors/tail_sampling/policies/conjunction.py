"""`and` and `drop`: traces that all of several policies say yes to are kept, or dropped whatever others say."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from podtrail.component import Context
from podtrail.config.mistakes import below, each
from podtrail.config.types import WarningPath
from podtrail.otlp import Decision
from podtrail.state import known_version
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.evidence.sought import Sought
from podtrail_processors.probability import ALWAYS
from podtrail_processors.tail_sampling.policies import negation
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
from podtrail_processors.tail_sampling.voting.words import some


class ConjunctionPart(Leaf):
    """A policy within `and` or `drop`."""

    not_: negation.Config = Field(negation.Config(), alias="not", description="The opposite of one policy.")


class All(Evaluator):
    """Gives its decision when all of its policies say yes; without policies, always."""

    def __init__(self, parts: Sequence[NamedEvaluator], decision: Decision) -> None:
        policies = [part.policy for part in parts]
        self.reads = Reads.union(policy.reads for policy in policies)
        self.threshold = max((policy.threshold for policy in policies), default=ALWAYS)
        self.dynamic = any(policy.dynamic for policy in policies)
        self.stateful = any(policy.stateful for policy in policies)
        self.by_tick = decision == "sampled" and any(policy.by_tick for policy in policies)
        self.may_fail = any(policy.may_fail for policy in policies)
        self.gates = _first_gates(policies)
        self.reason = " and ".join(policy.reason for policy in policies) or "no condition is given"
        self._parts = parts
        self._policies = policies
        self._decision = decision

    def vote(self, trace: Evidence) -> Decision:
        """Ask the policies in order, until one says no."""
        for policy in self._policies:
            if policy.vote(trace) != "sampled":
                return "not_sampled"
        return self._decision

    def weigh(self, trace: Evidence) -> None:
        """Have a trace weighed by those that do that, unless one of the others says no to it."""
        if all(policy.by_tick or policy.revote(trace) in ("sampled", None) for policy in self._policies):
            for policy in self._policies:
                policy.weigh(trace)

    def settle(self, now: int) -> None:
        """Have its policies choose."""
        for policy in self._policies:
            policy.settle(now)

    def because(self, trace: Evidence) -> str:
        """Tell why each of them said yes."""
        return " and ".join(policy.because(trace) for policy in self._policies) or self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell which of them said no, and why; of those that can't be asked again, that it was one of them."""
        unsure: list[NamedEvaluator] = []
        for part in self._parts:
            again = part.policy.revote(trace)
            if again == "not_sampled":
                unsure = [part]
                break
            unsure += [part] if again is None else []
        if len(unsure) == 1:
            return f"{unsure[0].name}: {unsure[0].policy.why_not(trace)}"
        return f"one of {some([part.name for part in unsure])} said no"

    def revote(self, trace: Evidence) -> Decision | None:
        """Ask those that can be asked again."""
        again = [part.policy.revote(trace) for part in self._parts]
        if "not_sampled" in again:
            return "not_sampled"
        return None if None in again else self._decision

    def threshold_of(self, trace: Evidence) -> int:
        """Return the highest threshold of its policies: who passes that passes all."""
        return max((policy.threshold_of(trace) for policy in self._policies), default=ALWAYS)

    def learners(self) -> Sequence[Callable[[Evidence], None]]:
        """Return those of its policies."""
        return [learner for policy in self._policies for learner in policy.learners()]

    def memories(self) -> Sequence[PolicyMemory]:
        """Return those of its policies."""
        return [memory for policy in self._policies for memory in policy.memories()]

    def attach(self, context: Context, name: str) -> None:
        """Attach its policies, under their own names below this one's."""
        for part in self._parts:
            part.policy.attach(context, f"{name}.{part.name}")

    def save_state(self) -> Any:
        """Return what its policies remember."""
        return saved_parts(self._policies)

    def restore_state(self, version: int, state: Any) -> None:
        """Have its policies remember what was saved."""
        known_version(version, 1)
        restore_parts(self._policies, state)

    def take_over(self, predecessor: Evaluator) -> None:
        """Have its policies go on from the memory of those before."""
        assert isinstance(predecessor, All)
        carry_over(self._parts, predecessor._parts)


def _first_gates(policies: Sequence[Evaluator]) -> frozenset[Sought] | None:
    """Return what it takes for one of the policies, if those before it may as well not be asked."""
    for policy in policies:
        if policy.gates is not None:
            return policy.gates
        if policy.stateful or policy.may_fail:
            break
    return None


def _named(part: ConjunctionPart) -> NamedEvaluator:
    return NamedEvaluator(part.name, part.create())


class AndConfig(PolicyConfig):
    """Settings of `and`."""

    and_sub_policy: tuple[ConjunctionPart, ...] = Field((), description="The policies that must all say yes.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: a part can't be made.
        """
        with below("and_sub_policy"):
            return All(each(_named, self.and_sub_policy), "sampled")

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return [] if self.and_sub_policy else [(("and_sub_policy",), "without policies it keeps everything")]


class DropConfig(PolicyConfig):
    """Settings of `drop`."""

    drop_sub_policy: tuple[ConjunctionPart, ...] = Field((), description="The policies that must all say yes.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: a part can't be made.
        """
        with below("drop_sub_policy"):
            return All(each(_named, self.drop_sub_policy), "dropped")

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return [] if self.drop_sub_policy else [(("drop_sub_policy",), "without policies it drops everything")]
