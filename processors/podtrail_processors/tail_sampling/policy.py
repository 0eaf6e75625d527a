"""What a policy is: a block of the configuration that makes a voter."""

from abc import ABC, abstractmethod

from podtrail.config.types import Model, WarningPath
from podtrail.otlp import Decision
from podtrail_processors.probability import ALWAYS
from podtrail_processors.tail_sampling.evidence import Evidence, Reads


class NoVote(Exception):
    """A policy can't vote on a trace; the text says why."""


class Policy(ABC):
    """Votes on traces. Deterministic: the same traces at the same pipeline times get the same votes."""

    reads: Reads = Reads()
    """The span fields it reads; none when it can do without decoding."""
    reason: str = ""
    """What it says yes to, in words: `a span has status ERROR`."""
    threshold: int = ALWAYS
    """With what threshold it chooses, if by chance: `podtrail_processors.probability`."""
    stateful: bool = False
    """Whether its vote depends on traces before, or on all spans being there: then it can't judge parts of a trace."""

    @abstractmethod
    def vote(self, trace: Evidence) -> Decision:
        """Return what is to become of a trace as far as this policy is concerned. NoVote when that can't be said."""

    def because(self, trace: Evidence) -> str:  # noqa: ARG002 - for policies that can be more exact
        """Return why it said yes to this trace, in words."""
        return self.reason


class Block(Model):
    """The settings of one policy type, under the type's name in the policy."""

    @abstractmethod
    def create(self) -> Policy:
        """Return the policy with these settings. ValueError when they can't be met."""

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant, with the path below this block; asked where the block is in use."""
        return []
