"""What a policy is: a block of the configuration that makes a voter."""

from abc import abstractmethod
from typing import Protocol

from podtrail.config.types import Model
from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.evidence import Evidence, Reads


class Policy(Protocol):
    """Votes on traces. Deterministic, and keeps nothing between two traces."""

    @property
    def reads(self) -> Reads:
        """The span fields it reads; none when it can do without decoding."""

    @property
    def reason(self) -> str:
        """Why it says yes, in words that can follow a trace: `a span has status ERROR`."""

    def vote(self, trace: Evidence) -> Decision:
        """Return what is to become of a trace as far as this policy is concerned."""


class Block(Model):
    """The settings of one policy type, under the type's name in the policy."""

    @abstractmethod
    def create(self) -> Policy:
        """Return the policy with these settings. ValueError when they can't be met."""
