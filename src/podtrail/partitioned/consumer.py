"""All partitions of a receiver: opened, and led to other pipelines on reload."""

from podtrail.component import Commit, Partition
from podtrail.partitioned.note import OwnersNote
from podtrail.partitioned.opening import open_partition
from podtrail.partitioned.owned import OwnedPartition
from podtrail.partitioned.shared import SharedByPartitions
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.partitioning import FedPipelines


class ReceiverPartitions:
    """What a partitioned receiver feeds (`podtrail.pipeline.partitioning.PartitionedConsumer`)."""

    def __init__(self, receiver: str, pipelines: FedPipelines, clock: PipelineClock) -> None:
        """Have partitions of `receiver` feed these pipelines; `clock`: the wall's, for whoever waits for memory."""
        self._shared = SharedByPartitions(receiver, pipelines, clock)
        self._open: list[OwnedPartition] = []

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

        Raises:
            StartError: a processor can't be made.
        """
        await self._shared.open.wait()
        opened = open_partition(
            *(topic, partition, self._shared, committed, checkpoint),
            keeps_checkpoints=keeps_checkpoints,
            topic_id=topic_id,
        )
        self._open = [*[each for each in self._open if not each.is_gone], opened]
        return opened

    @staticmethod
    def checkpoint_of(committed: Commit) -> str | None:
        """Return where the checkpoint is that a commit names."""
        note = _note_of(committed)
        return note.checkpoint.at if note and note.checkpoint else None

    @staticmethod
    def topic_id_of(committed: Commit) -> str:
        """Return which topic a commit is of; "": it does not say."""
        note = _note_of(committed)
        return note.topic_id if note else ""

    @staticmethod
    def position_of(committed: Commit) -> int:
        """Return how far the partition was read when this was committed; 0: it does not say."""
        note = _note_of(committed)
        return note.end.position if note else 0

    def shut(self) -> None:
        """Let nothing in any more: whoever comes waits."""
        self._shared.open.clear()

    def lead_to(self, pipelines: FedPipelines) -> None:
        """Have processors of these pipelines take over in every partition, while it is shut."""
        before, generation = self._shared.pipelines.settings, self._shared.generation
        self._shared.lead_to(pipelines)
        for each in self._open:
            if not each.is_gone:
                each.lead_to_successors(before, generation)

    def resume(self) -> None:
        """Let everybody in again. What is owed to an exporter that is gone by now nobody will deliver."""
        exporters = {id for pipeline in self._shared.pipelines.settings.pipelines for id in pipeline.exporters}
        self._shared.give_up(sum(each.give_up(exporters) for each in self._open if not each.is_gone))
        self._shared.open.set()


def _note_of(committed: Commit) -> OwnersNote | None:
    try:
        return OwnersNote.read(committed)
    except ValueError:
        return None  # `open` tells
