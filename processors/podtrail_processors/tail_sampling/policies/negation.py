"""`not`: the opposite of one policy."""

from pydantic import Field

from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.evidence import Evidence
from podtrail_processors.tail_sampling.policies.leaves import Leaf
from podtrail_processors.tail_sampling.policy import Block, Policy


class Not(Policy):
    """Says yes when its policy says no."""

    def __init__(self, policy: Policy) -> None:
        self.reads = policy.reads
        self.stateful = policy.stateful
        self.reason = f"it is not so that {policy.reason}"
        self._policy = policy

    def vote(self, trace: Evidence) -> Decision:
        """Turn the policy's vote round."""
        return "not_sampled" if self._policy.vote(trace) == "sampled" else "sampled"


class Config(Block):
    """Settings of `not`."""

    not_sub_policy: Leaf = Field(Leaf(), description="The policy to turn round.")

    def create(self) -> Policy:
        """Return the policy. ValueError when its part can't be made."""
        return Not(self.not_sub_policy.create())
