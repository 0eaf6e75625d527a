"""`always_sample`: every trace."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, model_validator

from podtrail.otlp import Decision
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig


class AlwaysSample(Evaluator):
    """Says yes to everything."""

    reason = "everything is kept"

    def vote(self, trace: Evidence) -> Decision:  # noqa: ARG002 - the protocol's
        """Say yes."""
        return "sampled"


class Config(PolicyConfig):
    """Has no settings; what stands there is passed over, as in the Collector."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _must_be_a_map(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ValueError("must be a map")
        return data

    def create(self) -> Evaluator:
        """Return the policy."""
        return AlwaysSample()
