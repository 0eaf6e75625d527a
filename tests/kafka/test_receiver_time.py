"""The time of a partition: its records', and the wall clock's once its end is reached."""

import json
import time
from collections.abc import Sequence

import pytest

from podtrail.component import Context, Metrics, PartitionRecord
from tests.kafka.cluster import Kafka
from tests.kafka.recorded_partitions import RecordedPartition, RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message

pytestmark = pytest.mark.kafka

SECOND = 10**9


async def test_at_the_end_time_goes_on_by_the_clock_less_the_timeout_once_that_is_committed(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    committed: list[int] = []

    def prepare(partition: RecordedPartition) -> None:
        partition.wanted = time.time_ns()
        partition.passing = lambda _: committed.append(_time_committed(kafka, topic))

    partitions = RecordedPartitions(prepare)
    async with receiving(partitions, **reads(kafka, topic, idle_timeout="1s")):
        await until(lambda: committed, "time to pass")
        now = time.time_ns()

    (passed,) = partitions.opened[0].times
    assert passed <= now - SECOND
    assert committed == [passed]


async def test_time_stands_still_at_the_end_where_nothing_is_due(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.produce(topic, [message("a")], partition=0)
    partitions = RecordedPartitions(lambda partition: _due(partition, partition.place[1] == 1))

    async with receiving(partitions, **reads(kafka, topic, idle_timeout="10ms")):
        await until(lambda: partitions.names and partitions.of(topic, 1).times, "the other partition's time to pass")

    assert partitions.of(topic, 0).marked == []


async def test_while_records_wait_the_clock_on_the_wall_does_not_count(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.produce(topic, [message("a"), message("b")], partition=0)

    def prepare(partition: RecordedPartition) -> None:
        _due(partition, due=True)
        if partition.place[1] == 0:
            partition.has_room.clear()

    partitions = RecordedPartitions(prepare)
    async with receiving(partitions, **reads(kafka, topic, idle_timeout="10ms")):
        await until(lambda: len(partitions.opened) == 2 and partitions.of(topic, 1).times, "the idle partition")
        lagging = partitions.of(topic, 0)
        assert lagging.marked == []
        lagging.has_room.set()
        await until(lambda: lagging.times, "its end")

    assert lagging.bodies == ["a", "b"]


async def test_time_does_not_pass_records_that_are_there_and_were_not_fetched_yet(kafka: Kafka) -> None:
    """As after a pause of the process: the last fetch has found the end, and much has happened since."""
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])

    def prepare(partition: RecordedPartition) -> None:
        take = partition.take

        async def taken(records: Sequence[PartitionRecord]) -> None:
            await take(records)
            partition.wanted = time.time_ns() + 3 * SECOND  # amid the third fetch, which a broker answers after 2 s

        partition.take = taken  # type: ignore[method-assign]

    partitions = RecordedPartitions(prepare)
    config = reads(kafka, topic, idle_timeout="10ms", min_fetch_size=1_000_000, max_fetch_wait="2s")
    async with receiving(partitions, **config) as receiver:
        await until(lambda: [owned.end for owned in receiver.receiver.owned] == [1], "the end")
        kafka.produce(topic, [message("b")])
        await until(lambda: partitions.opened[0].marked, "time to pass")

    assert partitions.names == ["a", "b"]


async def test_a_timeout_of_zero_leaves_time_to_the_records(kafka: Kafka) -> None:
    topic = kafka.topic()
    partitions = RecordedPartitions(lambda partition: _due(partition, due=True))

    async with receiving(partitions, **reads(kafka, topic, idle_timeout="0s")):
        kafka.produce(topic, [message("a")])
        await until(lambda: partitions.names, "the record")
        kafka.produce(topic, [message("b")])
        await until(lambda: len(partitions.names) == 2, "the other record")

    assert partitions.opened[0].marked == []


async def test_a_record_that_is_ahead_of_the_clock_is_told_and_counted(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    kafka.produce(topic, [message("b")], time_ms=time.time_ns() // 1_000_000 + 1_800_000)
    kafka.produce(topic, [message("c")])
    metrics, partitions = Metrics(), RecordedPartitions()

    async with receiving(partitions, Context("kafka", metrics=metrics), **reads(kafka, topic)):
        await until(lambda: len(partitions.names) == 3, "all records")
        partitions.opened[0].time = time.time_ns() + 1_800 * SECOND
        told = metrics.snapshot()

    labels = f"partition=0,topic={topic}"
    assert told["podtrail_kafka_receiver_future_records_total"] == {labels: 1}
    (ahead,) = told["podtrail_kafka_receiver_time_ahead_seconds"].values()
    assert 1_700 < ahead <= 1_800
    (line,) = [line for line in caplog.messages if "ahead of the clock" in line]
    assert line.startswith(f"{topic}[0] offset 1 is 1")


def _time_committed(kafka: Kafka, topic: str) -> int:
    _, metadata = kafka.committed(f"group-{topic}", topic)[0]
    time: int = json.loads(metadata)["time"]
    return time


def _due(partition: RecordedPartition, due: bool) -> None:
    partition.wanted = time.time_ns() if due else None
