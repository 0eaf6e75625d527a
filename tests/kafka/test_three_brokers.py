"""One of three brokers is killed or stopped: exporter, receiver and gateways go on, or say what is missing."""

from pathlib import Path

import pytest

from podtrail.component import Ledger, Retryable
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka
from tests.kafka.kills import Plan, run
from tests.kafka.recorded_partitions import RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message
from tests.kafka.test_kafka_exporter import batch_of, make, queued, span_counts

pytestmark = pytest.mark.kafka


async def test_with_one_of_three_brokers_killed_everything_arrives_once(kafka_of_three: Kafka) -> None:
    topic = kafka_of_three.topic(partitions=3, min_insync_replicas="2")
    config = {"traces": {"topic": topic}, "partition_by": "trace_id", "timeout": "60s"}
    async with queued(make(kafka_of_three.addresses(), producer={"required_acks": "all"}, **config)) as (queue, ledger):
        for trace in range(1, 1001):
            queue.offer(batch_of(trace), ledger)
            if trace == 500:
                kafka_of_three.leader(topic).kill()
        await queue.drain(DEADLINE, patient=True)
        assert ledger == Ledger(delivered=1000)

    assert span_counts(kafka_of_three.consume(topic)) == dict.fromkeys(range(1, 1001), 1)


async def test_with_one_of_three_brokers_killed_every_record_is_read_once_and_in_order(kafka_of_three: Kafka) -> None:
    kafka = kafka_of_three
    topic = kafka.topic(partitions=3)
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.alive == 3, "the partitions")
        for number in range(3):
            kafka.produce(topic, [message(f"{number}-{at}") for at in range(100)], partition=number)
        await until(lambda: len(partitions.names) >= 150, "half of the records")
        kafka.leader(topic).kill()
        for number in range(3):
            kafka.produce(topic, [message(f"{number}-{at}") for at in range(100, 200)], partition=number)
        await until(lambda: len(partitions.names) >= 600, "all records")

    for number in range(3):
        assert partitions.of(topic, number).bodies == [f"{number}-{at}" for at in range(200)]


async def test_too_few_replicas_are_said_to_be(kafka_of_three: Kafka) -> None:
    topic = kafka_of_three.topic(min_insync_replicas="3")
    follower = next(broker for broker in kafka_of_three.brokers if broker is not kafka_of_three.leader(topic))
    follower.stop()
    config = {"traces": {"topic": topic}, "timeout": "1s", "producer": {"required_acks": "all"}}
    async with make(kafka_of_three.addresses(), **config) as exporter:
        with pytest.raises(Retryable, match=f"topic {topic} acknowledged nothing within"):
            await exporter.send(batch_of(1))


def test_each_span_that_gateways_keep_is_there_once(kafka_of_three: Kafka, tmp_path: Path) -> None:
    plan = Plan(kills=2, seed=4, exactly_once=True, rate=60, kill_broker=True, pause=2.0, goes_on=3.0)

    verdict = run(kafka_of_three, plan, tmp_path)

    assert verdict.is_right(exactly_once=plan.exactly_once), str(verdict)
