"""What there is of a partition while it is owned: its processors, how far it has come, and what is to come first."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from podtrail.partitioned.arrivals import ArrivalOffsets
from podtrail.partitioned.delivered import PartitionStep
from podtrail.partitioned.leaving import PartitionLeaving
from podtrail.partitioned.note import OwnersNote
from podtrail.partitioned.processing import PartitionPipeline
from podtrail.partitioned.shared import SharedByPartitions
from podtrail.partitioned.succession import PendingSuccession


@dataclass(slots=True)
class PartitionState:
    """One partition."""

    topic: str
    number: int
    shared: SharedByPartitions
    pipelines: Sequence[PartitionPipeline]
    leaving: PartitionLeaving
    """Where what leaves them goes to."""
    configured: str
    """Tells the configuration of these processors from others."""
    position: int | None = None
    """The offset to be read next."""
    reached: int = 0
    """The time of the last record or mark, Unix nanoseconds."""
    told: int = 0
    """The latest time that processors were told, Unix nanoseconds."""
    arrivals: ArrivalOffsets = field(default_factory=ArrivalOffsets)
    """Of what the processors hold."""
    before: OwnersNote | None = None
    """What the last owner has left to be known."""
    ahead: deque[PartitionStep] = field(default_factory=deque)
    """Marks at which time is to pass, again or for the first time."""
    succession: PendingSuccession | None = None
    """What is to take over, and when."""
    came: int = 0
    """Spans that were taken."""
    read: int = 0
    """Bytes of spans that were taken since the last checkpoint."""
    topic_id: str = ""
    """Tells the topic from others of the same name."""

    @property
    def undecided(self) -> int:
        """How many spans are undecided."""
        return sum(pipeline.chain.held() for pipeline in self.pipelines)

    @property
    def inside(self) -> int:
        """How many spans are undecided or undelivered."""
        return self.undecided + self.leaving.undelivered.spans

    @property
    def oldest(self) -> int | None:
        """The time of the oldest record that may still be needed, Unix nanoseconds."""
        since = [since for pipeline in self.pipelines if (since := pipeline.chain.held_since()) is not None]
        owed = self.leaving.undelivered.since()
        return min(since if owed is None else [*since, owed], default=None)

    @property
    def remembers(self) -> bool:
        """Whether what was taken matters for what becomes of what comes."""
        return any(pipeline.remembers for pipeline in self.pipelines)

    def due(self) -> int | None:
        """Return the earliest time, Unix nanoseconds, at which something would be decided without another record."""
        return min((due for each in self.pipelines if (due := each.chain.deadline()) is not None), default=None)

    def step(self) -> PartitionStep:
        """Return when something leaves that leaves now."""
        return PartitionStep(self.position or 0, self.told)

    def left(self) -> PartitionStep:
        """Return the step until when everything has left the processors."""
        due, step = self.due(), self.step()
        return step if due is None or due > step.time else PartitionStep(step.position, due - 1)

    def replays(self) -> bool:
        """Say whether an owner before was further."""
        return self.before is not None and (self.succession is not None or self.left() < self.before.end)

    def finish(self) -> int:
        """Have the processors decide all that they hold, and bring it away.

        Returns:
            How many records an owner before had taken that these processors were not given.
        """
        before, position = self.before, self.position
        self.before = self.succession = None
        self.leaving.nothing_is_repeated()
        for pipeline in self.pipelines:
            pipeline.chain.drain(self.told)
            pipeline.left(self.step())
            self.leaving.carry(pipeline, at_any_rate=True)
        return 0 if before is None or position is None else max(0, before.left.position - position)

    def next_mark(self, offset: int) -> PartitionStep | None:
        """Return the next mark that comes before the record at an offset."""
        return self.ahead[0] if self.ahead and self.ahead[0].position <= offset else None
