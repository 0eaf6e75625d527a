"""One membership in a consumer group, from joining to leaving: partitions come, are worked on, and go."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError

from podtrail.component.partitions import Commit, Partitions
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.checkpoint_topic import CheckpointTopic
from podtrail_receivers.kafka.complaints import Complaints
from podtrail_receivers.kafka.config import Config
from podtrail_receivers.kafka.consumer_listener import Assigned, Fetched, Place, named
from podtrail_receivers.kafka.consumer_thread import ConsumerThread
from podtrail_receivers.kafka.future_records import FutureRecords
from podtrail_receivers.kafka.instruments import KafkaInstruments
from podtrail_receivers.kafka.keeping import Keeping
from podtrail_receivers.kafka.reading import MessageReader
from podtrail_receivers.kafka.unread import UnreadWatch

_MOST_BUFFERED: Final = 32 << 20
"""Bytes that wait for the pipelines, of all partitions; each has its share, and is not fetched beyond that."""
_LEAST_SHARE: Final = 256 << 10
_HANDING_OVER_SECONDS: Final = 1.0
_DELIVERING_SECONDS: Final = 1.5
_KEEPING_SECONDS: Final = 1.0
"""What is under way gets these, one after the other, when partitions are given up: what is not done then is done again
by the next owner. All of it is less than a receiver has to stop."""
_REQUEST_SECONDS: Final = 10.0
_OUT_OF_RANGE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class Equipment(NamedTuple):
    """What all memberships of a receiver have in common."""

    config: Config
    properties: Mapping[str, Any]
    partitions: Partitions
    owned: dict[Place, AssignedPartition]
    read: MessageReader
    checkpoints: CheckpointTopic | None
    instruments: KafkaInstruments
    complaints: Complaints
    log: logging.LoggerAdapter[logging.Logger]


class FencedError(Exception):
    """Another member has come under the same `group_instance_id`: the one thing that is fatal to a consumer."""


class Membership:
    """One membership. `run` it, once."""

    def __init__(self, equipment: Equipment, keep: Callable[[ConsumerThread], Keeping]) -> None:
        """Make it. `keep`: makes what commits by means of the consumer."""
        self._with = equipment
        config = equipment.config
        static = config.cooperative and config.group_instance_id
        unread = UnreadWatch(config.group_id, config.traces.reads) if static else None
        topics, cooperative = config.traces.topics, config.cooperative
        self._thread = ConsumerThread(equipment.properties, topics, self, unread, cooperative=cooperative)
        self._keeping = keep(self._thread)
        self._owned = equipment.owned
        self._future_records = FutureRecords(equipment.complaints, equipment.instruments)
        self._paused: set[Place] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._errands: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Be a member until cancelled, or until something ends it.

        Raises:
            KafkaException: the client can't go on.
            RebalanceError: a rebalance could not be gone through.
            FencedError: another has its place.
        """
        ended = asyncio.ensure_future(self._thread.start())
        keeping = asyncio.create_task(self._keeping.run(), name="kafka commits")
        failed = False
        try:
            done, _ = await asyncio.wait({ended, keeping, self._failure}, return_when=asyncio.FIRST_COMPLETED)
            failed = any(future.exception() is not None for future in done)
            for future in done:
                future.result()
        finally:
            await self._thread.stop()
            for task in (keeping, *self._errands):
                task.cancel()
            ended.cancel()
            await asyncio.gather(ended, keeping, *self._errands, return_exceptions=True)
            self._failure.cancel()
            if failed:  # what was on its way to exporters is read again: none of it may be in the next transaction
                await self._keeping.abandon()
            await self.dropped(tuple(self._owned))

    def fetched(self, found: Mapping[Place, Fetched]) -> None:
        """Take what was fetched; have no more fetched of a partition of which too much waits."""
        self._with.complaints.reached()
        self._with.instruments.fetched(found)
        share = self._share()
        now_ms = time.time_ns() // 1_000_000
        full: list[Place] = []
        for place, of_one in found.items():
            owned = self._owned.get(place)
            if owned is None:
                continue
            self._future_records.look(place, of_one.messages, now_ms)
            owned.add(of_one)
            if owned.buffered > share and place not in self._paused:
                full.append(place)
        if full:
            self._paused.update(full)
            self._thread.pause(full)

    def failed(self, error: KafkaError, place: Place | None) -> None:
        """Note an error that librdkafka goes on after, or end the membership with it."""
        if error.fatal() or error.code() == KafkaError._FATAL:
            self._fail(FencedError(error.str()))
        elif error.code() in _OUT_OF_RANGE and place in self._owned:
            self._run_errand(self._find_anew(place))
        else:
            self._with.complaints.tell(error, place)

    def left_waiting(self) -> None:
        """Say that the group lets nobody in."""
        self._with.complaints.left_waiting()

    def looked(self, brokers: int, leaderless: Sequence[Place]) -> None:
        """Note how many brokers there are, and say which partitions have no leader."""
        self._with.complaints.known(brokers)
        self._with.complaints.without_leader(frozenset(map(named, leaderless)))

    def left_unread(self, places: Sequence[Place]) -> None:
        """Say that nobody in the group has these."""
        self._with.complaints.say(
            f"nobody in the group {self._with.config.group_id} reads {', '.join(map(named, places))}: leaves it and "
            "joins it again, so that all partitions are shared out anew"
        )

    async def assigned(self, given: Sequence[Assigned]) -> Mapping[Place, int]:
        """Open partitions; return from which offset on each is read."""
        commits = {each.place: self._beginning(each) for each in given}
        partitions = self._with.partitions
        pointers = {
            place: at for place, commit in commits.items() if (at := partitions.checkpoint_of(commit)) is not None
        }
        read = self._with.checkpoints
        checkpoints = await read.read(pointers) if read is not None and pointers else {}
        starts: dict[Place, int] = {}
        for each in given:
            place, commit = each.place, commits[each.place]
            partition = await partitions.open(
                *place, commit, checkpoints.get(place), keeps_checkpoints=read is not None
            )
            owned = AssignedPartition(
                place, partition, self._with.read, self._keeping, self._with.config.idle_timeout, self._drained
            )
            self._owned[place] = owned
            self._keeping.begin(place, pointers.get(place))
            self._with.instruments.started()
            position = commit.offset if partition.position is None else partition.position
            if position < each.first:
                self._tell_gone(place, position, each.first)
            starts[place] = max(position, each.first)
            owned.start(self._ended)
        if starts:
            self._with.log.info("reads %s", _shown(starts))
        return starts

    async def revoked(self, places: Sequence[Place]) -> Mapping[Place, Commit]:
        """Stop working on partitions that will be somebody else's; return what is to be committed of each."""
        going = [self._owned[place] for place in places if place in self._owned]
        await asyncio.gather(*[owned.stop(_HANDING_OVER_SECONDS) for owned in going])
        if self._keeping.failed:
            return {}
        which = ", ".join([named(owned.place) for owned in going])
        if await _within(_DELIVERING_SECONDS, [owned.partition.delivered() for owned in going]):
            self._with.log.warning(
                "%s: exporters take longer than %g s for what was under way, which may be delivered again",
                *(which, _DELIVERING_SECONDS),
            )
        if await _within(_KEEPING_SECONDS, [self._keep(owned) for owned in going]):
            self._with.log.warning(
                "%s: no checkpoint could be written within %g s: what left since a reload may be delivered again",
                *(which, _KEEPING_SECONDS),
            )
        return await self._keeping.last_commits([owned.place for owned in going])

    async def lost(self, places: Sequence[Place]) -> None:
        """Forget partitions that are somebody else's already."""
        await asyncio.gather(*[self._owned[place].stop(0) for place in places if place in self._owned])
        await self._keeping.abandon()
        await self.dropped(places)

    async def dropped(self, places: Sequence[Place]) -> None:
        """Forget partitions: their last commit is made."""
        if self._keeping.failed:
            await asyncio.gather(*[owned.stop(0) for owned in self._owned.values()])
        await self._keeping.settle()
        gone = [owned for place in places if (owned := self._owned.pop(place, None)) is not None]
        await asyncio.gather(*[owned.stop(0) for owned in gone])
        for owned in gone:
            self._with.instruments.closed(owned)
            owned.partition.drop()
        self._keeping.forget(places)
        self._paused.difference_update(places)
        if gone:
            self._with.log.info("gives up %s", ", ".join([named(owned.place) for owned in gone]))

    async def _keep(self, owned: AssignedPartition) -> None:
        async with self._keeping.working():
            await self._keeping.write_checkpoint(owned.place, owned.partition)

    def _beginning(self, given: Assigned) -> Commit:
        place, committed = given.place, given.committed
        if committed is None:
            latest = self._with.config.initial_offset == "latest"
            return Commit(given.end if latest else given.first, "")
        if committed.offset > given.end:
            self._with.log.warning(
                "%s ends at %d, before what the group has committed (%d): it was made anew or cut; read from its "
                "beginning",
                named(place),
                given.end,
                committed.offset,
            )
            return Commit(given.first, "")
        return committed

    async def _find_anew(self, place: Place) -> None:
        """Go on where a partition begins now: what was to be read is no longer there."""
        first = await self._thread.begin_anew(place)
        owned = self._owned.get(place)
        if owned is not None and (position := owned.partition.position) is not None:
            self._tell_gone(place, position, first)

    def _tell_gone(self, place: Place, position: int, first: int) -> None:
        if first > position:
            self._with.instruments.gone(place, first - position)
            self._with.log.error(
                "%s begins at %d, records from %d on were still needed: %d are gone; retention is shorter than the lag",
                named(place),
                first,
                position,
                first - position,
            )
        else:
            self._with.log.warning("%s was made anew or cut: read from %d on", named(place), first)

    def _share(self) -> int:
        return max(_LEAST_SHARE, _MOST_BUFFERED // max(1, len(self._owned)))

    def _drained(self, owned: AssignedPartition) -> None:
        if owned.place in self._paused and owned.buffered < self._share() // 2:
            self._paused.discard(owned.place)
            self._thread.resume([owned.place])

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _run_errand(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        task.add_done_callback(self._ended)


async def _within(seconds: float, work: Sequence[Awaitable[None]]) -> int:
    """Return when all of it is done, or after so many seconds: what is not done then is cancelled; say how much.

    Raises:
        Exception: whatever the work raises.
    """
    if not work:
        return 0
    tasks = [asyncio.ensure_future(each) for each in work]
    done, pending = await asyncio.wait(tasks, timeout=seconds)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    errors = [error for task in done if (error := task.exception()) is not None]
    if errors:
        raise errors[0]
    return len(pending)


def _shown(starts: Mapping[Place, int]) -> str:
    return ", ".join([f"{named(place)} from {offset}" for place, offset in starts.items()])
