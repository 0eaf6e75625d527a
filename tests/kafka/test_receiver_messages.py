"""Messages of all kinds as the `kafka` receiver reads them: compressed, large, empty, unreadable."""

import logging
import os

import pytest
from confluent_kafka import Producer
from podtrail_receivers.kafka import properties

from podtrail.component import Context, Metrics
from podtrail.otlp import Batch, write_request
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka
from tests.kafka.recorded_partitions import RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message
from tests.kafka.test_kafka_exporter import batch_of, make, span_counts

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "podtrail")


async def test_whatever_messages_are_compressed_with_they_are_read(kafka: Kafka) -> None:
    topic = kafka.topic()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        _produce(kafka, topic, message(codec, 10_000), {"compression.type": codec})
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.names == ["none", "gzip", "snappy", "lz4", "zstd"], "all of them")


async def test_a_message_larger_than_all_that_is_fetched_at_once_is_read(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="20000000")
    _produce(kafka, topic, message("large", 5_000_000), {"message.max.bytes": 20_000_000})
    kafka.produce(topic, [message("next")])
    partitions = RecordedPartitions()
    least = {"max_fetch_size": 1000, "max_partition_fetch_size": 1000}

    async with receiving(partitions, **reads(kafka, topic, **least)):
        await until(lambda: partitions.names == ["large", "next"], "both")


async def test_a_message_of_100_000_spans_is_read_and_cut_for_the_next_topic(kafka: Kafka) -> None:
    topic, other = kafka.topic(max_message_bytes="50000000"), kafka.topic()
    batch = batch_of(*range(1, 101), spans=1000)
    _produce(kafka, topic, write_request(batch.groups), {"message.max.bytes": 50_000_000})
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.opened and partitions.opened[0].records, "the record")
    read = partitions.opened[0].records[0].batch
    assert read is not None
    assert read.span_count == 100_000
    async with make(kafka.addresses(), timeout="60s", traces={"topic": other}) as exporter:
        assert await exporter.send(Batch(read.groups, 1)) == 0

    written = kafka.consume(other)
    assert span_counts(written) == dict.fromkeys(range(1, 101), 1000)
    assert max(len(record.value or b"") for record in written) <= 1_000_000


async def test_batches_that_expand_beyond_the_limit_are_passed_over_told_and_counted(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(properties, "_LARGEST_ANSWER", 2_000_000)
    topic = kafka.topic()
    kafka.produce(topic, [message("before")])
    for records in (3, 2):
        _produce(kafka, topic, bytes(1_200_000), {**_ONE_BATCH, "compression.type": "zstd"}, records)
    _produce(kafka, topic, message("behind"), _ONE_BATCH, 2)
    partitions, metrics = RecordedPartitions(), Metrics()

    async with receiving(partitions, Context("kafka", metrics=metrics), **reads(kafka, topic)):
        await until(lambda: len(partitions.names) == 3, "what is behind them")

    assert partitions.names == ["before", "behind", "behind"]
    assert f"{topic}[0] offsets 1 to 3 can't be read" in caplog.text
    assert f"{topic}[0] offsets 4 to 5 can't be read" in caplog.text
    assert metrics.counter("otelcol_kafka_receiver_unmarshal_failed_spans", "").values == {(topic, "0"): 5}


@pytest.mark.parametrize("exactly_once", [False, True])
async def test_the_topic_alone_says_how_large_a_dead_letter_may_be(kafka: Kafka, exactly_once: bool) -> None:
    topic, aside = kafka.topic(max_message_bytes="20000000"), kafka.topic(max_message_bytes="20000000")
    letters = [b"\xff" + os.urandom(2_000_000), b"\xff small"]
    for letter in letters:
        _produce(kafka, topic, letter, _ONE_BATCH)
    partitions = RecordedPartitions()

    config = reads(kafka, topic, dead_letter={"topic": aside}, exactly_once=exactly_once)
    async with receiving(partitions, **config):
        await until(lambda: len(kafka.consume(aside)) == 2, "both")

    assert {record.value for record in kafka.consume(aside)} == set(letters)


async def test_an_unreadable_message_that_the_dead_letter_topic_never_takes_is_told_counted_and_passed_over(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic, aside = kafka.topic(), kafka.topic(max_message_bytes="1000")
    kafka.produce(topic, [b"\xff" + os.urandom(2000), message("behind")])
    partitions, metrics = RecordedPartitions(), Metrics()

    context = Context("kafka", metrics=metrics)
    async with receiving(partitions, context, **reads(kafka, topic, dead_letter={"topic": aside})):
        await until(lambda: partitions.names == ["behind"], "what is behind it")

    assert (
        f"{topic}[0] offset 0 can't be copied to {aside}, it is lost: topic {aside} takes no message of" in caplog.text
    )
    assert metrics.counter("podtrail_kafka_receiver_lost_dead_letters_total", "").values == {(topic, "0"): 1}


_ONE_BATCH: dict[str, str | int] = {"message.max.bytes": 20_000_000, "batch.size": 20_000_000, "linger.ms": 5000}


def _produce(kafka: Kafka, topic: str, value: bytes, properties: dict[str, str | int], times: int = 1) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap(), "log_level": 0, **properties})
    producer.list_topics(topic, DEADLINE)  # whoever does not know the topic yet may send the first message by itself
    for _ in range(times):
        producer.produce(topic, value)
    assert producer.flush(DEADLINE) == 0
