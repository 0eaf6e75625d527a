"""What becomes of a partition's progress: commits, checkpoints, and messages that can't be read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from podtrail.component.partitions import Commit, Partition
from podtrail.transport.kafka.failures import KafkaFailure
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.checkpoint_topic import CheckpointTopic, Produce
from podtrail_receivers.kafka.consumer_listener import Place, named
from podtrail_receivers.kafka.dead_letters import DeadLetters
from podtrail_receivers.kafka.reading import Poisoned


class KeptAside(NamedTuple):
    """Where else than to the pipelines something goes."""

    produce: Produce
    """Writes checkpoints and dead letters."""
    checkpoints: CheckpointTopic | None
    """None: none are kept."""
    dead_letters: DeadLetters
    complain: Callable[[str], None]
    """Says what went wrong, if it was not said lately."""
    gone: Callable[[Place, int], None]
    """Counts records that were still needed and are gone."""


class Keeping(ABC):
    """Keeps what the next owner of a partition needs; how it commits is what there are two kinds of."""

    def __init__(self, owned: Mapping[Place, AssignedPartition], aside: KeptAside) -> None:
        """Make it. `owned`: the partitions that this member has; `aside`: keeps the rest."""
        self._owned = owned
        self._aside = aside
        self._kept: dict[Place, str] = {}
        """Where the checkpoint of each partition is."""
        self._named: dict[Place, str] = {}
        """Where the one is that is known to be committed."""

    @property
    def bite(self) -> int:
        """Bytes that are read and handed over at once; then other partitions have their turn."""
        return 512 << 10

    @abstractmethod
    def working(self) -> AbstractAsyncContextManager[None]:
        """Return what is held while the pipelines are given something."""

    @abstractmethod
    async def commit_first(self, place: Place, commit: Commit) -> None:
        """Return when this is committed, or is sure to be together with all that follows from it."""

    @abstractmethod
    async def run(self) -> None:
        """Commit, again and again."""

    @property
    def failed(self) -> bool:
        """Whether nothing more can be committed in this membership."""
        return False

    @abstractmethod
    async def abandon(self) -> None:
        """Note that partitions are somebody else's already."""

    @abstractmethod
    async def settle(self) -> None:
        """After a failure: return when nothing that was under way can come of it any more."""

    @abstractmethod
    async def last_commits(self, places: Collection[Place]) -> Mapping[Place, Commit]:
        """Return what the consumer is to commit of partitions that will be somebody else's."""

    async def commit_last(self, commits: Mapping[Place, Commit]) -> Mapping[Place, Commit]:
        """Commit what `last_commits` returned, before the group is left; return what could not be committed."""
        return commits

    async def set_aside(self, place: Place, poisoned: Sequence[Poisoned]) -> None:
        """Return when messages that can't be read are told, counted and, if asked for, copied."""
        await self._aside.dead_letters.take(place, poisoned, self._aside.produce)

    def begin(self, place: Place, checkpoint: str | None) -> None:
        """Note where the checkpoint is that a partition was opened with."""
        if checkpoint is not None:
            self._kept[place] = self._named[place] = checkpoint

    def forget(self, places: Collection[Place]) -> None:
        """Forget partitions: they are no longer this member's."""
        for place in places:
            self._kept.pop(place, None)
            self._named.pop(place, None)

    def named(self, places: Iterable[Place]) -> Mapping[Place, str]:
        """Return where the checkpoint of each of these partitions is that a commit made now names."""
        return {place: self._kept[place] for place in places if place in self._kept}

    async def keep_checkpoint(self, place: Place, partition: Partition) -> bool:
        """Write a checkpoint while the partition is worked on; return whether there is one now."""
        return await self.write_checkpoint(place, partition)

    async def write_checkpoint(self, place: Place, partition: Partition) -> bool:
        """Write a checkpoint, if they are kept, that commits name from then on; return whether there is one now.

        Where nobody knows yet whether the last one is committed, that one stays, and so does the one before it. There
        is room for one more than those: for what another configuration has decided since, when a partition is given up.
        """
        if self._aside.checkpoints is None:
            return False
        pieces = partition.checkpoint()
        if pieces is None:
            return False
        needed = {each[place] for each in (self._kept, self._named) if place in each}
        try:
            at = await self._aside.checkpoints.write(place, pieces, needed, self._aside.produce)
        except KafkaFailure as failure:
            self._aside.complain(f"{named(place)}: no checkpoint could be written: {failure}")
            return False
        self._kept[place] = at
        partition.checkpointed(at)
        return True
