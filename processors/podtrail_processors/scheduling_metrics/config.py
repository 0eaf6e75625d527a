"""The configuration of `scheduling_metrics`."""

from collections.abc import Mapping
from itertools import pairwise

from pydantic import Field, field_validator

from podtrail.config.types import MILLISECOND, SECOND, Model, PositiveDuration

_ATTEMPT_BUCKETS = tuple(MILLISECOND * 2**power for power in range(15))
_WAIT_BUCKETS = tuple(10 * MILLISECOND * 2**power for power in range(20))


_ATTEMPT_BYTES, _POD_BYTES = 900, 900
"""What an attempt and a Pod take at most, as measured with the longest texts."""


class Config(Model):
    """Settings of `scheduling_metrics`."""

    attempt_duration_buckets: tuple[PositiveDuration, ...] = Field(
        _ATTEMPT_BUCKETS,
        min_length=1,
        description="Upper bounds of `podtrail_scheduling_attempt_duration_seconds`; by default kube-scheduler's, "
        "1ms to 16.384s in powers of two.",
    )
    queue_wait_buckets: tuple[PositiveDuration, ...] = Field(
        _WAIT_BUCKETS,
        min_length=1,
        description="Upper bounds of `podtrail_scheduling_queue_wait_seconds`; by default 10ms to 87 minutes in powers "
        "of two.",
    )
    max_series: int = Field(
        500,
        ge=1,
        description="How many combinations of label values are told apart, by result and by plugin; what is beyond "
        "that counts under `other`.",
    )
    remembered_attempts: int = Field(
        4096,
        ge=0,
        description="Attempts that are remembered, to count what comes twice once, and to put plugins that come in "
        "another request than the root under the attempt's profile.",
    )
    max_pending_pods: int = Field(
        10_000, ge=0, description="Pods that are remembered as waiting; those tried longest ago are forgotten first."
    )
    pending_forgotten_after: PositiveDuration = Field(
        600 * SECOND,
        description="How long a Pod whose last attempt failed counts as waiting, unless it is tried again, and how "
        "long attempts are remembered. kube-scheduler tries each Pod again after 5m at the latest.",
    )

    def memory_bounds(self, budget: int) -> Mapping[str, int]:  # noqa: ARG002 - it takes no share
        """Return the bytes of remembered attempts and waiting Pods."""
        return {
            "remembered_attempts": self.remembered_attempts * _ATTEMPT_BYTES,
            "max_pending_pods": self.max_pending_pods * _POD_BYTES,
        }

    @field_validator("attempt_duration_buckets", "queue_wait_buckets")
    @classmethod
    def _rising(cls, bounds: tuple[int, ...]) -> tuple[int, ...]:
        if any(upper <= lower for lower, upper in pairwise(bounds)):
            raise ValueError("must rise from one bound to the next")
        return bounds
