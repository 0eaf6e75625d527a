"""Partitions that take what a `kafka` receiver reads and remember it, in place of pipelines."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from confluent_kafka import KafkaException
from podtrail_receivers.kafka.config import Config
from podtrail_receivers.kafka.receiver import KafkaReceiver

from podtrail.component import Context
from podtrail.component.partitions import Commit, PartitionRecord
from podtrail.otlp.framing import split
from podtrail.otlp.span import SpanView
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka

PATIENCE = float(DEADLINE)
"""Seconds after which what did not come will not come any more."""


class RecordedPartition:
    """One partition: it is decided what has been taken."""

    def __init__(self, place: tuple[str, int], committed: Commit | None, checkpoint: bytes | None) -> None:
        self.place = place
        self.committed = committed
        self.restored = checkpoint
        self.position: int | None = None if committed is None else committed.offset
        self.records: list[PartitionRecord] = []
        self.times: list[int] = []
        self.marked: list[int] = []
        self.wanted: int | None = None
        """What `due` says."""
        self.state = b""
        """What the next checkpoint says."""
        self.checkpoint_wanted = False
        self.at: str | None = None
        self.topic_id = ""
        self.finished = False
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.dropped = False
        self.repeated = 0
        self.undecided = 0
        self.time = 0
        self.oldest: int | None = None
        self.passing: Callable[[int], object] = lambda _: None
        """Is called, in a thread, when time is to pass."""
        self.needs: int | None = None
        """The offset that is committed; None: the position."""

    async def take(self, records: Sequence[PartitionRecord]) -> None:
        for record in records:
            await self.has_room.wait()
            if self.position is None or record.offset >= self.position:
                self.records.append(record)
                self.position = record.offset + 1

    def due(self) -> int | None:
        return self.wanted

    def mark(self, now: int) -> Commit:
        self.marked.append(now)
        return self._commit(now)

    async def pass_time(self, now: int) -> None:
        assert self.marked[-1] == now
        self.times.append(now)  # from now on commits say so
        self.wanted = None
        await asyncio.to_thread(self.passing, now)

    def commit(self) -> Commit:
        return self._commit(self.times[-1] if self.times else 0)

    def _commit(self, time: int) -> Commit:
        offset = self.position or 0 if self.needs is None else self.needs
        return Commit(offset, json.dumps({"at": self.at, "time": time, "topic_id": self.topic_id}))

    def checkpoint_due(self) -> bool:
        return self.checkpoint_wanted

    def checkpoint(self) -> Sequence[bytes | memoryview] | None:
        self.checkpoint_wanted = False
        return [self.state, b"!"]

    def checkpointed(self, at: str) -> None:
        self.at = at

    async def delivered(self) -> None:
        return

    def finish(self) -> int:
        self.finished = True
        return 0

    def drop(self) -> None:
        self.dropped = True

    @property
    def bodies(self) -> list[str]:
        """The names of the spans that were taken."""
        return [name for record in self.records for name in names(record)]


class RecordedPartitions:
    """All partitions that a receiver was given, by place, in the order in which it was."""

    def __init__(self, prepare: Callable[[RecordedPartition], None] = lambda _: None) -> None:
        self.opened: list[RecordedPartition] = []
        self._prepare = prepare

    async def open(
        self,
        topic: str,
        partition: int,
        committed: Commit | None,
        checkpoint: bytes | None,
        *,
        keeps_checkpoints: bool = True,
        topic_id: str = "",
    ) -> RecordedPartition:
        opened = RecordedPartition((topic, partition), committed, checkpoint)
        opened.topic_id = topic_id
        self._prepare(opened)
        self.opened.append(opened)
        return opened

    @staticmethod
    def checkpoint_of(committed: Commit) -> str | None:
        at = json.loads(committed.metadata)["at"] if committed.metadata else None
        assert at is None or isinstance(at, str)
        return at

    @staticmethod
    def topic_id_of(committed: Commit) -> str:
        topic_id = json.loads(committed.metadata).get("topic_id", "") if committed.metadata else ""
        assert isinstance(topic_id, str)
        return topic_id

    @staticmethod
    def position_of(committed: Commit) -> int:
        position = json.loads(committed.metadata).get("position", 0) if committed.metadata else 0
        assert isinstance(position, int)
        return position

    @property
    def alive(self) -> int:
        """How many partitions the receiver has now."""
        return len(self.places)

    @property
    def places(self) -> set[tuple[str, int]]:
        """The partitions that the receiver has now."""
        return {partition.place for partition in self.opened if not partition.dropped}

    def of(self, topic: str, number: int) -> RecordedPartition:
        """Return what was opened last as this partition."""
        return [partition for partition in self.opened if partition.place == (topic, number)][-1]

    @property
    def names(self) -> list[str]:
        """The names of all spans that were taken."""
        return [name for partition in self.opened for name in partition.bodies]


def names(record: PartitionRecord) -> list[str]:
    """Return the names of the spans of a record."""
    if record.batch is None:
        return []
    return [SpanView(span).name for group in record.batch.groups for span in split(group.spans)]


class Receiving(NamedTuple):
    """A receiver that runs."""

    receiver: KafkaReceiver
    ended: asyncio.Task[None]

    @property
    def buffered(self) -> int:
        """How many bytes wait for the pipelines."""
        return sum(owned.buffered for owned in self.receiver.owned)

    @property
    def paused(self) -> bool:
        """Whether so much waits that no more is fetched."""
        return self.buffered > 32 << 20


@asynccontextmanager
async def receiving(
    partitions: RecordedPartitions, context: Context | None = None, **config: Any
) -> AsyncIterator[Receiving]:
    """Run a receiver that is stopped in order at the end."""
    async with KafkaReceiver(Config.model_validate(config), context or Context("kafka")) as receiver:
        task = asyncio.create_task(receiver.run(partitions))
        try:
            yield Receiving(receiver, task)
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()


def reads(kafka: Kafka, topic: str, **more: Any) -> dict[str, Any]:
    """Return the configuration of a receiver of one topic, with a group and checkpoints of its own."""
    return {
        "brokers": kafka.addresses(),
        "traces": {"topics": [topic]},
        "group_id": f"group-{topic}",
        "initial_offset": "earliest",
        "heartbeat_interval": "500ms",
        "session_timeout": "30s",
        "checkpoints": {"topic": f"checkpoints-{topic}"},
        "autocommit": {"interval": "100ms"},
        "metadata": {"refresh_interval": "1s"},
        **more,
    }


async def until(ready: Callable[[], Any], what: str) -> None:
    """Return when something is so; an error of Kafka's is a no."""

    def is_so() -> bool:
        try:
            return bool(ready())
        except KafkaException:
            return False

    try:
        async with asyncio.timeout(PATIENCE):
            while not await asyncio.to_thread(is_so):  # noqa: ASYNC110 - what is asked is a broker
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None
