"""One membership in a consumer group, from joining to leaving: partitions come, are worked on, and go."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from podtrail.component.partitions import Commit, Partitions
from podtrail.transport.kafka.failures import KafkaFailure
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.checkpoint_topic import CheckpointTopic
from podtrail_receivers.kafka.complaints import Complaints
from podtrail_receivers.kafka.config import Config
from podtrail_receivers.kafka.consumer_listener import Assigned, Fetched, Place, named
from podtrail_receivers.kafka.consumer_thread import ConsumerThread
from podtrail_receivers.kafka.future_records import FutureRecords
from podtrail_receivers.kafka.instruments import KafkaInstruments
from podtrail_receivers.kafka.keeping import Keeping
from podtrail_receivers.kafka.latest_offsets import LatestOffsets
from podtrail_receivers.kafka.openings import Openings
from podtrail_receivers.kafka.reading import MessageReader
from podtrail_receivers.kafka.topic_ids import TopicIds
from podtrail_receivers.kafka.unread import UnreadWatch
from podtrail_receivers.kafka.unreadable_batches import next_readable

_MOST_BUFFERED: Final = 32 << 20
"""Bytes that wait for the pipelines, of all partitions; each has its share, and is not fetched beyond that."""
_LEAST_SHARE: Final = 256 << 10
_HANDING_OVER_SECONDS: Final = 1.0
_DELIVERING_SECONDS: Final = 1.5
_KEEPING_SECONDS: Final = 1.0
"""What is under way gets these, one after the other, when partitions are given up: what is not done then is done again
by the next owner. All of it is less than a receiver has to stop."""
_LOOKING_SECONDS: Final = 2.0
"""Between two looks whether topics were made anew: what is read of them meanwhile is read again."""
_BEHIND_ALL: Final = 1 << 63
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
    topic_ids: TopicIds
    log: logging.LoggerAdapter[logging.Logger]


Keep = Callable[[ConsumerThread, Callable[[], Awaitable[Collection[str]]]], Keeping]


class FencedError(Exception):
    """Another member has come under the same `group_instance_id`: the one thing that is fatal to a consumer."""


class Membership:
    """One membership. `run` it, once."""

    def __init__(self, equipment: Equipment, keep: Keep) -> None:
        """Make it. `keep`: makes what commits by means of the consumer, and is told which topics were made anew."""
        self._with = equipment
        config = equipment.config
        static = config.cooperative and config.group_instance_id
        unread = UnreadWatch(config.group_id, config.traces.reads) if static else None
        topics, cooperative = config.traces.topics, config.cooperative
        self._thread = ConsumerThread(equipment.properties, topics, self, unread, cooperative=cooperative)
        self._keeping = keep(self._thread, self._changed)
        self._latest = LatestOffsets(lambda: self._thread.admin)
        self._owned = equipment.owned
        self._loop = asyncio.get_running_loop()
        self._future_records = FutureRecords(equipment.complaints, equipment.instruments)
        self._paused: set[Place] = set()
        self._failure: asyncio.Future[None] = self._loop.create_future()
        self._passed_over: dict[Place, int] = {}
        """The offset behind batches that can't be read: librdkafka goes on telling of them for a while."""
        self._errands: set[asyncio.Task[None]] = set()
        self._openings = Openings(
            *(config, equipment.partitions, equipment.checkpoints, equipment.topic_ids),
            *(equipment.instruments, equipment.log),
        )
        self._leaving = False
        self._uncommitted: Mapping[Place, Commit] | None = None
        """Once all partitions are given up before the group is left: what of it is not committed yet."""
        self._left_for: set[str] = set()
        """Topics made anew because of which the group is left, until partitions of theirs are opened again."""

    async def run(self) -> None:
        """Be a member until cancelled, or until something ends it.

        Raises:
            KafkaException: the client can't go on.
            RebalanceError: a rebalance could not be gone through.
            FencedError: another has its place.
        """
        ended = asyncio.ensure_future(self._thread.start())
        keeping = asyncio.create_task(self._keeping.run(), name="kafka commits")
        self._run_errand(self._look_for_topics_made_anew())
        failed = False
        spent = 0.0
        try:
            done, _ = await asyncio.wait({ended, keeping, self._failure}, return_when=asyncio.FIRST_COMPLETED)
            failed = any(future.exception() is not None for future in done)
            for future in done:
                future.result()
        except asyncio.CancelledError:
            began = self._loop.time()
            await self._release()
            spent = self._loop.time() - began
            raise
        finally:
            await self._thread.stop(spent)
            for task in (keeping, *self._errands):
                task.cancel()
            ended.cancel()
            self._latest.close()
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
            if owned is None or self._leaving:
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

    def unreadable(self, error: KafkaError, place: Place, offset: int) -> None:
        """Pass a batch over, once what came before it is taken."""
        if place in self._owned and offset >= self._passed_over.get(place, 0):
            self._passed_over[place] = _BEHIND_ALL
            self._run_errand(self._pass_over(error, place, offset))

    async def _pass_over(self, error: KafkaError, place: Place, offset: int) -> None:
        behind = await asyncio.to_thread(next_readable, self._with.properties, place, offset)
        owned = self._owned.get(place)
        if owned is None:
            return
        if behind == offset:
            self._passed_over.pop(place, None)
            return
        first = max(offset, owned.next)
        self._with.instruments.unreadable(place, behind - first)
        self._with.log.warning(
            "%s offsets %d to %d can't be read, and are skipped: their batch is damaged, or larger than %d bytes once "
            "expanded: %s",
            *(named(place), first, behind - 1, self._with.properties["receive.message.max.bytes"], error.str()),
        )
        owned.add(Fetched([Message(*place, offset=behind - 1)], owned.high, None))
        await self._thread.read_from(place, behind)
        self._passed_over[place] = behind

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
        """Open partitions, unless the group is being left; return from which offset on each is read."""
        if self._leaving:
            return {}
        with_ = self._with
        starts: dict[Place, int] = {}
        async for place, partition, start, checkpoint in self._openings.open(given, self._thread.admin, self._keeping):
            owned = AssignedPartition(
                *(place, partition, with_.read, self._keeping, with_.config.idle_timeout),
                latest=self._latest.of,
                drained=self._drained,
            )
            self._owned[place] = owned
            self._keeping.begin(place, checkpoint)
            self._future_records.opened(place, partition.time, time.time_ns() // 1_000_000)
            self._with.instruments.started()
            starts[place] = start
            owned.start(self._ended)
        self._left_for.difference_update([topic for topic, _ in starts])
        if starts:
            self._with.log.info("reads %s", _shown(starts))
        return starts

    async def revoked(self, places: Sequence[Place]) -> Mapping[Place, Commit]:
        """Stop working on partitions that will be somebody else's; return what is to be committed of each."""
        if self._uncommitted is not None:
            return {place: self._uncommitted[place] for place in places if place in self._uncommitted}
        return await self._give_up(places)

    async def _release(self) -> None:
        """Give all partitions up before the group is left, while a commit that a rebalance refuses can be made again.

        A member that leaves no longer hears of the group's next generation, and commits nothing in that.
        """
        self._leaving = True
        try:
            commits = self._uncommitted = await self._give_up(tuple(self._owned))
            self._uncommitted = await self._keeping.commit_last(commits)
        except (KafkaException, KafkaFailure) as error:
            self._with.complaints.say(
                f"leaves the group {self._with.config.group_id}, and what was committed last may be done again: {error}"
            )

    async def _give_up(self, places: Sequence[Place]) -> Mapping[Place, Commit]:
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
        for place in places:
            self._passed_over.pop(place, None)
        if gone:
            self._with.log.info("gives up %s", ", ".join([named(owned.place) for owned in gone]))

    async def _keep(self, owned: AssignedPartition) -> None:
        async with self._keeping.working():
            await self._keeping.write_checkpoint(owned.place, owned.partition)

    async def _find_anew(self, place: Place) -> None:
        """Go on where a partition begins now: what was to be read is no longer there."""
        first = await self._thread.begin_anew(place)
        owned = self._owned.get(place)
        if owned is None or (position := owned.partition.position) is None:
            return
        if first > position:
            self._openings.tell_gone(place, position, first)
        else:
            self._join_anew({place[0]}, f"{named(place)} ends before offset {position}: it was made anew or cut")

    async def _look_for_topics_made_anew(self) -> None:
        while True:
            await asyncio.sleep(_LOOKING_SECONDS)
            if changed := await self._changed():
                self._join_anew(changed, f"topic {', '.join(sorted(changed))} was made anew")

    async def _changed(self) -> Collection[str]:
        topics = {topic for topic, _ in self._owned}
        return await self._with.topic_ids.changed(self._thread.admin, topics)

    def _join_anew(self, topics: Collection[str], why: str) -> None:
        """Have all partitions taken up again, from their beginning where they are of a topic that was made anew."""
        if not self._left_for.issuperset(topics):
            self._left_for.update(topics)
            self._with.complaints.say(f"{why}; leaves the group {self._with.config.group_id} and joins it again")
            self._thread.join_anew()

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
