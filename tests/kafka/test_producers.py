"""Producers of `podtrail.transport.kafka` on a real broker: each message is acknowledged, or it is said why not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError

from podtrail.transport.kafka.failures import KafkaFailure
from podtrail.transport.kafka.message import Message, MessagePlace
from podtrail.transport.kafka.producer import AcknowledgedProducer
from podtrail.transport.kafka.properties import client_properties
from podtrail.transport.kafka.settings import KafkaClientSettings
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import SASL_PLAINTEXT, SASL_SSL, USER, Kafka

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def producing(
    kafka: Kafka, listener: str = "PLAINTEXT", client: dict[str, Any] | None = None, **properties: Any
) -> AsyncIterator[AcknowledgedProducer]:
    """A producer; underscores in the names of properties stand for dots."""
    settings = KafkaClientSettings.model_validate({"brokers": kafka.addresses(listener), **(client or {})})
    own = {name.replace("_", "."): value for name, value in properties.items()}
    producer = AcknowledgedProducer({**client_properties(settings), "linger.ms": 5, **own})
    await producer.start()
    try:
        yield producer
    finally:
        await producer.close()


async def delivered(producer: AcknowledgedProducer, topic: str, value: bytes) -> None:
    """Return when a message is: one try may be too short on a busy machine."""
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await producer.produce(topic, value)
            except KafkaFailure as failure:
                if not failure.retriable:
                    raise
            else:
                return


async def test_each_message_has_its_place(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)

    async with producing(kafka) as producer:
        places = await producer.produce_all([Message(topic, b"%d" % at, b"k", partition=1) for at in range(500)])
        alone = await producer.produce(topic, None, b"k", [("h", b"v")], 0)

    assert list(places) == [MessagePlace(1, at) for at in range(500)]
    assert alone == MessagePlace(0, 0)
    first, *rest = kafka.consume(topic)
    assert (first.value, first.key, first.headers) == (None, b"k", {"h": b"v"})
    assert [record.value for record in rest] == [b"%d" % at for at in range(500)]


async def test_a_message_that_the_topic_does_not_take_is_told_with_its_size(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="1000")

    async with producing(kafka) as producer:
        with pytest.raises(KafkaFailure, match=f"topic {topic} takes no message of 2000 bytes") as failure:
            await producer.produce(topic, b"x" * 2000)
        assert await producer.produce(topic, b"small") == MessagePlace(0, 0)

    assert not failure.value.retriable


async def test_an_unknown_topic_is_named(kafka: Kafka) -> None:
    async with producing(
        kafka, allow_auto_create_topics=False, topic_metadata_propagation_max_ms=500, message_timeout_ms=60_000
    ) as producer:
        with pytest.raises(KafkaFailure, match="there is no topic nowhere") as failure:
            await producer.produce("nowhere", b"lost")
    assert failure.value.retriable


async def test_a_broker_that_does_not_answer_is_waited_for_as_long_as_was_said(kafka: Kafka) -> None:
    topic = kafka.topic()
    async with producing(kafka, message_timeout_ms=1000, topic_metadata_propagation_max_ms=500) as producer:
        await delivered(producer, topic, b"before")
        kafka.brokers[0].stall()
        with pytest.raises(KafkaFailure, match=f"topic {topic} acknowledged nothing within 1 s") as failure:
            await producer.produce(topic, b"while it hangs")
        kafka.brokers[0].go_on()
        await delivered(producer, topic, b"after")
    assert failure.value.retriable


@pytest.mark.parametrize(
    ("password", "listener"), [("wrong", SASL_PLAINTEXT), ("wrong", SASL_SSL)], ids=["plaintext", "tls"]
)
async def test_a_wrong_password_is_said_to_be_one(secured_kafka: Kafka, password: str, listener: str) -> None:
    assert secured_kafka.authority is not None
    sasl = {"mechanism": "SCRAM-SHA-256", "username": USER, "password": password}
    client: dict[str, Any] = {"auth": {"sasl": sasl}}
    if listener == SASL_SSL:
        client["tls"] = {"ca_file": str(secured_kafka.authority.certificate)}

    async with producing(secured_kafka, listener, client, message_timeout_ms=1500) as producer:
        said = ""
        async with asyncio.timeout(DEADLINE):  # on a busy machine the first may time out before it is known why
            while "uthentication failed" not in said:
                with pytest.raises(KafkaFailure, match="acknowledged nothing") as failure:
                    await producer.produce("anything", b"secret")
                assert failure.value.code == KafkaError._MSG_TIMED_OUT
                said = str(failure.value)


async def test_what_is_under_way_at_the_end_fails_rather_than_hangs(kafka: Kafka) -> None:
    async with producing(kafka, linger_ms=60_000) as producer:
        waiting = producer.produce(kafka.topic(), b"lingers")
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(KafkaFailure):
            await waiting
