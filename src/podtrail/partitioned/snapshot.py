"""The checkpoint of a partition: its processors, what exporters owe, when what they hold arrived."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podtrail.durable.head import read_head, write_head
from podtrail.durable.state import PipelineStates
from podtrail.partitioned.arrivals import Arrival
from podtrail.partitioned.delivered import PartitionStep

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """The state of one partition at one moment."""

    topic: str
    partition: int
    step: PartitionStep
    """How many records were taken, and how late it was."""
    states: PipelineStates
    owed: Sequence[PartitionStep]
    """When what is owed had left, in the order of `states.owed`."""
    leaving: Mapping[str, Sequence[PartitionStep]]
    """When what waits at the end of a chain had left it, by pipeline."""
    arrivals: Sequence[Arrival]

    def pieces(self) -> Sequence[bytes | memoryview]:
        """Return it in bytes."""
        head = {
            "topic": self.topic,
            "partition": self.partition,
            "step": self.step,
            "owed": self.owed,
            "leaving": self.leaving,
            "arrivals": self.arrivals,
        }
        return [write_head(_FORMAT, head), *self.states.prepared()()]

    @classmethod
    def read(cls, data: bytes) -> "PartitionSnapshot":
        """Return what was written.

        Raises:
            ValueError: it is no such state, or one of another version.
        """
        try:
            head, end = read_head(_FORMAT, data)
            step, owed = PartitionStep(*head["step"]), _steps(head["owed"])
            leaving = {str(id): _steps(steps) for id, steps in head["leaving"].items()}
            arrivals = [(int(arrival), int(offset)) for arrival, offset in head["arrivals"]]
            topic, partition = head["topic"], head["partition"]
        except (struct.error, AttributeError, LookupError, RecursionError, TypeError) as error:
            raise ValueError(f"it is no state of a partition: {error}") from error
        states = PipelineStates.read(data[end:])
        if len(owed) != len(states.owed):
            raise ValueError("it does not say when all of what is owed has left")
        return cls(topic, partition, step, states, owed, leaving, arrivals)


def _steps(told: Sequence[Any]) -> Sequence[PartitionStep]:
    return [PartitionStep(int(position), int(time)) for position, time in told]
