"""Where a partition is begun with: where it is committed, at its end or beginning, or anew with its topic made anew."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient

from podtrail.component.partitions import Commit, Partition, Partitions
from podtrail_receivers.kafka.checkpoint_topic import CheckpointTopic
from podtrail_receivers.kafka.config import Config
from podtrail_receivers.kafka.consumer_listener import Assigned, Place, named
from podtrail_receivers.kafka.instruments import KafkaInstruments
from podtrail_receivers.kafka.keeping import Keeping
from podtrail_receivers.kafka.topic_ids import TopicIds

_FINISHING_SECONDS: Final = 1.5
"""For what a topic that is no more has left undecided to be delivered."""


class OpenedPartition(NamedTuple):
    """A partition that was begun with."""

    place: Place
    partition: Partition
    start: int
    """The offset to be read first."""
    checkpoint: str | None
    """Where the checkpoint is that it was opened with."""


class _Beginning(NamedTuple):
    given: Assigned
    commit: Commit
    anew: Commit | None
    """What to begin with instead, where what is committed is of records that are no more."""


class Openings:
    """Opens partitions."""

    def __init__(
        self,
        config: Config,
        partitions: Partitions,
        checkpoints: CheckpointTopic | None,
        topic_ids: TopicIds,
        instruments: KafkaInstruments,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        """Make it.

        Args:
            config: the receiver's.
            partitions: what is fed.
            checkpoints: reads checkpoints; None: none are kept.
            topic_ids: tells whether a topic was made anew.
            instruments: count records that are gone.
            log: tells of them.
        """
        self._config = config
        self._partitions = partitions
        self._checkpoints = checkpoints
        self._topic_ids = topic_ids
        self._instruments = instruments
        self._log = log

    async def open(
        self, given: Sequence[Assigned], client: AdminClient | None, keeping: Keeping
    ) -> AsyncIterator[OpenedPartition]:
        """Open partitions one after the other, as their last owners have left them.

        Args:
            given: what is known of each.
            client: asks brokers for the ids of topics.
            keeping: has what is finished delivered.
        """
        ids = await self._topic_ids.open(client, {each.place[0] for each in given})
        beginnings = [self._beginning(each, ids.get(each.place[0], "")) for each in given]
        pointers = {
            each.given.place: at
            for each in beginnings
            if (at := self._partitions.checkpoint_of(each.commit)) is not None
        }
        kept = self._checkpoints
        checkpoints = await kept.read(pointers) if kept is not None and pointers else {}
        for each in beginnings:
            place = each.given.place
            id, checkpoint, pointer = ids.get(place[0], ""), checkpoints.get(place), pointers.get(place)
            partition = await self._open(place, each.commit, checkpoint, id)
            commit = each.commit
            if each.anew is not None:
                await self._finish(place, partition, keeping)
                commit, pointer = each.anew, None
                partition = await self._open(place, commit, None, id)
            position = commit.offset if partition.position is None else partition.position
            if position < each.given.first:
                self.tell_gone(place, position, each.given.first)
            yield OpenedPartition(place, partition, max(position, each.given.first), pointer)

    def tell_gone(self, place: Place, position: int, first: int) -> None:
        """Count and tell records that were still needed and that retention has taken."""
        self._instruments.gone(place, first - position)
        self._log.error(
            "%s begins at %d, records from %d on were still needed: %d are gone; retention is shorter than the lag",
            *(named(place), first, position, first - position),
        )

    async def _open(self, place: Place, commit: Commit, checkpoint: bytes | None, topic_id: str) -> Partition:
        keeps = self._checkpoints is not None
        return await self._partitions.open(*place, commit, checkpoint, keeps_checkpoints=keeps, topic_id=topic_id)

    def _beginning(self, given: Assigned, topic_id: str) -> _Beginning:
        place, committed, first = given.place, given.committed, Commit(given.first, "")
        if committed is None:
            latest = self._config.initial_offset == "latest" and not self._topic_ids.is_made_anew(place[0])
            return _Beginning(given, Commit(given.end, "") if latest else first, None)
        before = self._partitions.topic_id_of(committed)
        if before and topic_id and before != topic_id:
            self._log.warning(
                "topic %s was made anew since the group has committed offset %d of %s: read from its beginning",
                *(place[0], committed.offset, named(place)),
            )
            return _Beginning(given, committed, first)
        if committed.offset > given.end:
            self._log.warning(
                "%s ends at %d, before what the group has committed (%d): it was made anew or cut; read from its "
                "beginning",
                *(named(place), given.end, committed.offset),
            )
            return _Beginning(given, committed, first)
        if (position := self._partitions.position_of(committed)) > given.end:
            self._log.warning(
                "%s ends at %d, before offset %d that its last owner is said to have read: it was cut, or somebody "
                "else has committed that; read from offset %d on with nothing remembered",
                *(named(place), given.end, position, committed.offset),
            )
            return _Beginning(given, Commit(committed.offset, ""), None)
        return _Beginning(given, committed, None)

    async def _finish(self, place: Place, partition: Partition, keeping: Keeping) -> None:
        """Have what a topic that is no more has left undecided decided, and delivered if that is possible soon."""
        async with keeping.working():
            if lost := partition.finish():
                self._instruments.gone(place, lost)
                self._log.error("%s: %d records of the topic before were still needed and are gone", named(place), lost)
            try:
                async with asyncio.timeout(_FINISHING_SECONDS):
                    await partition.delivered()
            except TimeoutError:
                self._log.warning(
                    "%s: exporters take longer than %g s for what was undecided; it is lost if podtrail is killed now",
                    *(named(place), _FINISHING_SECONDS),
                )
        partition.drop()
