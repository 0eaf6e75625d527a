"""What a user can set of lifecycles."""

from pydantic import Field

from podtrail.config.types import MINUTE, SECOND, Model, NonNegativeDuration, PositiveDuration


class LifecycleSettings(Model):
    """With `mode: lifecycle` or `merge`: when the life of a Pod is told, and how much of it is remembered."""

    timeout: PositiveDuration = Field(
        default=10 * MINUTE,
        description="How long after a Pod was first heard of its root span is sent at the latest, whatever has become "
        "of it. Longer than the scheduler lets a Pod rest (5 minutes), and as long as a Deployment waits for progress.",
    )
    wait: NonNegativeDuration = Field(
        default=10 * SECOND,
        description="How long after a Pod is ready, has ended or is deleted its parts are still gathered before its "
        "root is sent; and how long what comes after that is. Longer than components hold spans back (5 s by default).",
    )
    max_pods: int = Field(
        default=20_000, ge=1, description="Pods whose lives are remembered; for the one more, the oldest is told early."
    )
    max_parts_per_pod: int = Field(
        default=64, ge=8, description="Parts told of one Pod; what a Pod that crashes for days does beyond is counted."
    )
    max_waiting_calls: int = Field(
        default=10_000,
        ge=1,
        description="Calls of the container runtime remembered of traces that have not said yet whose Pod they are.",
    )
