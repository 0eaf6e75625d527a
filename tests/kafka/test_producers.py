"""Producers of `podtrail.transport.kafka` on a real broker; what it refuses is in test_kafka_exporter.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podtrail.transport.kafka.failures import KafkaFailure
from podtrail.transport.kafka.message import Message, MessagePlace
from podtrail.transport.kafka.producer import AcknowledgedProducer
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def producing(kafka: Kafka, linger_ms: int) -> AsyncIterator[AcknowledgedProducer]:
    producer = AcknowledgedProducer({"bootstrap.servers": kafka.bootstrap(), "linger.ms": linger_ms})
    await producer.start()
    try:
        yield producer
    finally:
        await producer.close()


async def test_each_message_has_its_place(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)

    async with producing(kafka, 5) as producer:
        places = await producer.produce_all([Message(topic, b"%d" % at, b"k", partition=1) for at in range(500)])
        alone = await producer.produce(topic, None, b"k", [("h", b"v")], 0)

    assert list(places) == [MessagePlace(1, at) for at in range(500)]
    assert alone == MessagePlace(0, 0)
    first, *rest = kafka.consume(topic)
    assert (first.value, first.key, first.headers) == (None, b"k", {"h": b"v"})
    assert [record.value for record in rest] == [b"%d" % at for at in range(500)]


async def test_what_is_under_way_at_the_end_fails_rather_than_hangs(kafka: Kafka) -> None:
    async with producing(kafka, 60_000) as producer:
        waiting = producer.produce(kafka.topic(), b"lingers")
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(KafkaFailure):
            await waiting
