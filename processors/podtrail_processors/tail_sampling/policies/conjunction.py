"""`and` and `drop`: traces that all of several policies say yes to are kept, or dropped whatever others say."""

from collections.abc import Sequence

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail.otlp import Decision
from podtrail_processors.probability import ALWAYS
from podtrail_processors.tail_sampling.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policies import negation
from podtrail_processors.tail_sampling.policies.leaves import Leaf
from podtrail_processors.tail_sampling.policy import Block, Policy


class Part(Leaf):
    """A policy within `and` or `drop`."""

    not_: negation.Config = Field(negation.Config(), alias="not", description="The opposite of one policy.")


class All(Policy):
    """Gives its decision when all of its policies say yes; without policies, always."""

    def __init__(self, policies: Sequence[Policy], decision: Decision) -> None:
        self.reads = Reads.union(policy.reads for policy in policies)
        self.threshold = max((policy.threshold for policy in policies), default=ALWAYS)
        self.stateful = any(policy.stateful for policy in policies)
        self.reason = " and ".join(policy.reason for policy in policies) or "no condition is given"
        self._policies = policies
        self._decision = decision

    def vote(self, trace: Evidence) -> Decision:
        """Ask the policies in order, until one says no."""
        for policy in self._policies:
            if policy.vote(trace) != "sampled":
                return "not_sampled"
        return self._decision

    def because(self, trace: Evidence) -> str:
        """Tell why each of them said yes."""
        return " and ".join(policy.because(trace) for policy in self._policies) or self.reason


class And(Block):
    """Settings of `and`."""

    and_sub_policy: tuple[Part, ...] = Field((), description="The policies that must all say yes.")

    def create(self) -> Policy:
        """Return the policy. ValueError when a part can't be made."""
        return All([part.create() for part in self.and_sub_policy], "sampled")

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return [] if self.and_sub_policy else [(("and_sub_policy",), "without policies it keeps everything")]


class Drop(Block):
    """Settings of `drop`."""

    drop_sub_policy: tuple[Part, ...] = Field((), description="The policies that must all say yes.")

    def create(self) -> Policy:
        """Return the policy. ValueError when a part can't be made."""
        return All([part.create() for part in self.drop_sub_policy], "dropped")

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return [] if self.drop_sub_policy else [(("drop_sub_policy",), "without policies it drops everything")]
