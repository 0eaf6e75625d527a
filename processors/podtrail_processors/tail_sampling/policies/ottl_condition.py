"""`ottl_condition`: traces of which a span, or an event of one, meets a condition in the Collector's language."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from podtrail_processors.tail_sampling.policies.lenient import Texts
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


ErrorMode = Annotated[Literal["ignore", "silent", "propagate"] | None, BeforeValidator(_lower)]


class Config(PolicyConfig):
    """Settings of `ottl_condition`."""

    error_mode: ErrorMode = Field(
        None,
        description="When a condition has no answer (a wrong type, a division by zero): `silent` passes it over, "
        "`ignore` also logs it, once a minute at most, `propagate` leaves the policy without a vote on the trace. "
        "The default is `silent`.",
    )
    span: Texts = Field((), description="Conditions on spans: a trace is kept when one holds for one span.")
    spanevent: Texts = Field((), description="Conditions on events of spans: kept when one holds for one event.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: there are no conditions, or one can't be read: which, where and why.
        """
        if not self.span and not self.spanevent:
            raise ValueError("expected at least one condition under span or spanevent")
        from podtrail_processors.tail_sampling.policies.ottl_vote import policy_of

        return policy_of(self.span, self.spanevent, self.error_mode)
