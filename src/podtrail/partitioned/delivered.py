"""How far what leaves the processors of a partition is delivered."""

from typing import Final, NamedTuple

MOST_GAPS: Final = 12
"""Stretches of what is under way that are told apart: an exporter has ten requests under way unless told otherwise."""


class PartitionStep(NamedTuple):
    """When something leaves the processors: so many records were taken by then, and so late it was."""

    position: int
    """The offset to be read next."""
    time: int
    """The partition's, Unix nanoseconds."""

    def before(self) -> "PartitionStep":
        """Return the last step before this."""
        return PartitionStep(self.position, self.time - 1)


class DeliveredSteps(NamedTuple):
    """What an exporter is done with of what left one pipeline of a partition."""

    until: PartitionStep
    """All of it until then, this step included,"""
    gaps: tuple[tuple[PartitionStep, PartitionStep], ...] = ()
    """but for these steps, from one to another."""

    def has(self, step: PartitionStep) -> bool:
        """Say whether what left at a step is delivered."""
        return step <= self.until and not any(first <= step <= last for first, last in self.gaps)

    def without_gaps(self) -> "DeliveredSteps":
        """Return as much of it as can be said without gaps."""
        return DeliveredSteps(self.gaps[0][0].before()) if self.gaps else self
