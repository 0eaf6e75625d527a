"""What is done when memory gets short or decisions come late: the settings of `stress_relief`."""

from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import SECOND, Model, NonNegativeDuration, WarningPath
from podtrail_processors.tail_sampling.voting.throughput import LEAST_BUDGET, MOST_BUDGET

MOST_REMEMBERED: Final = 16_384
"""Of the traces decided at once that were kept, and of the others."""
_KEPT_BYTES, _OTHER_BYTES = 1_000, 140
"""What one takes in memory at most, its reason with 200 characters; as measured."""


class StressReliefConfig(Model):
    """Settings of `stress_relief`."""

    mode: Literal["off", "auto", "always"] = Field(
        "off",
        description="`auto`: under stress new traces are not held but decided at once, by their trace id. The level of "
        "stress is the highest of: what undecided traces take of `maximum_held_mib`, what the process takes of "
        "`memory_limit_mib`, how late decisions are against `maximum_lag`.",
    )
    activate_at_percentage: float = Field(90.0, gt=0, description="Relief begins at this level of stress.")
    deactivate_at_percentage: float = Field(75.0, ge=0, description="And ends below this one.")
    minimum_duration: NonNegativeDuration = Field(10 * SECOND, description="But not before so long.")
    memory_limit_mib: int = Field(
        0, ge=0, description="Resident memory of the process that makes a level of 100 %, in MiB; 0: not looked at."
    )
    maximum_lag: NonNegativeDuration = Field(
        5 * SECOND, description="Lateness of decisions that makes a level of 100 %; 0: not looked at."
    )
    sampling_percentage: float = Field(
        1.0, ge=0, le=100, description="The share of new traces that is kept under stress, chosen by their trace id."
    )
    errors_per_second: float = Field(
        100.0,
        ge=0,
        allow_inf_nan=False,
        description="About so many traces a second are kept under stress for a span of status ERROR or an attempt that "
        "did not succeed; of more of them a share. 0: they are treated as any other.",
    )

    @field_validator("errors_per_second")
    @classmethod
    def _can_be_reckoned_with(cls, rate: float) -> float:
        if rate and not LEAST_BUDGET <= rate <= MOST_BUDGET:
            raise ValueError(f"must be 0, or from {LEAST_BUDGET:g} to {MOST_BUDGET:g}")
        return rate

    @model_validator(mode="after")
    def _off_below_on(self) -> "StressReliefConfig":
        if self.deactivate_at_percentage > self.activate_at_percentage:
            raise ValueError("deactivate_at_percentage must not be above activate_at_percentage")
        return self

    def memory_bound(self) -> int:
        """Return the bytes that traces decided at once may take, which are remembered for what follows."""
        return 0 if self.mode == "off" else MOST_REMEMBERED * (_KEPT_BYTES + _OTHER_BYTES)

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        if self.mode == "always":
            return [(("mode",), "always: no policy is asked about any trace")]
        if self.mode == "auto" and not self.memory_limit_mib and not self.maximum_lag:
            return [(("mode",), "without memory_limit_mib and maximum_lag only maximum_held_mib can bring relief")]
        return []

    def warnings_in_partitions(self, *, bounded: bool) -> list[tuple[WarningPath, str]]:
        """Return what has no effect in a partition.

        Args:
            bounded: whether there is a `maximum_held_mib`.
        """
        if self.mode != "auto":
            return []
        found: list[tuple[WarningPath, str]] = []
        if self.memory_limit_mib:
            found.append(
                (
                    ("memory_limit_mib",),
                    "has no effect: whoever reads a partition again decides the same, in any process",
                )
            )
        if self.maximum_lag and "maximum_lag" in self.model_fields_set:
            found.append(
                (("maximum_lag",), "has no effect: a partition has the time of its records, in which nothing is late")
            )
        if not bounded:
            found.append(
                (("mode",), "has no effect: only maximum_held_mib can bring relief in a partition, and it is not set")
            )
        return found

    def shared_among(self, shards: int) -> "StressReliefConfig":
        """Return the settings of one of so many samplers."""
        return self.model_copy(update={"errors_per_second": self.errors_per_second / shards})
