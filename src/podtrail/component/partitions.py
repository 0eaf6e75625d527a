"""A receiver whose source is cut into partitions, each a log that can be read again: what the pipelines keep of one.

Every partition has processors of its own, which are told the time of the partition: that of its records. So what is
decided is a function of the partition alone, whoever reads it. All times are integer nanoseconds since the Unix epoch.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from podtrail.otlp import Batch


class PartitionRecord(NamedTuple):
    """What a receiver has read at one offset of a partition."""

    offset: int
    time: int
    """The record's timestamp: when it was appended or created, as the topic has it."""
    batch: Batch | None
    """Its spans. None: it has none that can be used; position and time of the partition move on all the same."""


class Commit(NamedTuple):
    """What is committed for a partition: with it any other owner goes on where this one was."""

    offset: int
    """The smallest whose record may still be needed: undecided or undelivered."""
    metadata: str
    """What the next owner has to know besides; less than 4096 bytes of ASCII."""


class Partition(Protocol):
    """What the pipelines keep of one partition while it is owned. One task drives it; several at once must not.

    A call that is cancelled has done a part of its work, and the next goes on from there: records that `position` has
    not passed are to be taken again.
    """

    @property
    def position(self) -> int | None:
        """The offset to be read next; None: nothing is known of the partition, the first record tells it."""

    async def take(self, records: Sequence[PartitionRecord]) -> None:
        """Take records in the order of their offsets, waiting for room; those before `position` are passed over."""

    def due(self) -> int | None:
        """Return the earliest time at which something would be decided without another record."""

    def mark(self, now: int) -> Commit:
        """Return what must be committed before `pass_time(now)` is called.

        When it is not known whether it was committed: neither take nor commit anything else of this partition until it
        is, or drop it.
        """

    async def pass_time(self, now: int) -> None:
        """Let time pass without a record, until `now`, and let what is due by then leave, waiting for room."""

    def commit(self) -> Commit:
        """Return what may be committed now."""

    def checkpoint_due(self) -> bool:
        """Return whether it is time to write a checkpoint, so that the next owner has not too much to read again."""

    def checkpoint(self) -> Sequence[bytes | memoryview] | None:
        """Return the state as it is now, in pieces; None when it can't be taken, which was told and counted."""

    def checkpointed(self, at: str) -> None:
        """Have commits name the checkpoint taken last: it can be read again at `at` (short, ASCII)."""

    async def delivered(self) -> None:
        """Return when everything that has left the processors is delivered, or was given up."""

    def finish(self) -> int:
        """Decide at once what is undecided, for its topic is no more; return how many records were lost with that.

        Those are what an owner before had taken and the checkpoint does not have.
        """

    @property
    def undecided(self) -> int:
        """How many spans are undecided."""

    @property
    def oldest(self) -> int | None:
        """The time of the oldest record that may still be needed."""

    @property
    def time(self) -> int:
        """The time that it has reached; 0: none."""

    @property
    def repeated(self) -> int:
        """How many decisions were made again that an earlier owner had made, since it was opened."""

    def drop(self) -> None:
        """Forget everything: somebody else owns it. What was undecided counts as never received."""


class Partitions(Protocol):
    """What a partitioned receiver feeds: all pipelines that it feeds, partition by partition."""

    async def open(
        self,
        topic: str,
        partition: int,
        committed: Commit | None,
        checkpoint: bytes | None,
        *,
        keeps_checkpoints: bool = True,
        topic_id: str = "",
    ) -> Partition:
        """Return a partition as its last owner has left it.

        Args:
            topic: its topic.
            partition: its number there.
            committed: what is committed for it; None when nothing is.
            checkpoint: what was written where `checkpoint_of(committed)` says; None when there is nothing, or it can't
                be read. One that can't be used is told and counted; the partition is then read from the committed
                offset on.
            keeps_checkpoints: whether checkpoints are written when they are due. Where they are, nothing is committed
                that the next owner could decide otherwise without one; where not, it may.
            topic_id: tells the topic from one of the same name before or after it; "": not known.
        """

    @staticmethod
    def checkpoint_of(committed: Commit) -> str | None:
        """Return where the checkpoint is that a commit names: what `checkpointed` was told."""

    @staticmethod
    def topic_id_of(committed: Commit) -> str:
        """Return the `topic_id` that a partition was opened with when this was committed; "": it does not say."""

    @staticmethod
    def position_of(committed: Commit) -> int:
        """Return how far the partition was read when this was committed; 0: it does not say."""


class PartitionedReceiver(AbstractAsyncContextManager["PartitionedReceiver"], Protocol):
    """A receiver that feeds `Partitions`; its `Factory` says that it is `partitioned`. Otherwise as a `Receiver`."""

    finite: bool
    """Whether `run` ends by itself when the source is exhausted."""

    async def run(self, partitions: Partitions) -> None:
        """Feed the pipelines. When cancelled: commit what is done, drop the partitions, end."""


@runtime_checkable
class TransactionalConfig(Protocol):
    """The `Config` of a partitioned receiver that may read, and have its exporters write, in one transaction."""

    exactly_once: bool


@runtime_checkable
class TransactionalReceiver(Protocol):
    """A partitioned receiver that may have its exporters write in its transactions."""

    @property
    def transactions(self) -> Any:
        """What they write in; None: each writes by itself."""


@runtime_checkable
class TransactionalExporter(Protocol):
    """An exporter that can write in the transactions of a receiver."""

    def produce_within(self, transactions: Any) -> None:
        """Write in these instead of by itself; called before it is entered."""
