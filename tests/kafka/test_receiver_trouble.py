"""What goes wrong with messages, topics and brokers: told in one line, counted, and gone on after."""

import asyncio
import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from podtrail_receivers.kafka import receiver

from podtrail.component import Commit, Context, Metrics
from tests.kafka.cluster import PLAINTEXT, SASL_PLAINTEXT, SSL, USER, Kafka
from tests.kafka.recorded_partitions import RecordedPartition, RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message

pytestmark = pytest.mark.kafka

SASL = {"mechanism": "PLAIN", "username": USER, "password": "wrong"}


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "podtrail")


async def test_a_message_that_cant_be_read_is_told_counted_skipped_and_kept_aside(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic, aside = kafka.topic(), kafka.topic()
    kafka.produce(topic, [message("a"), b"\xff poison", b"\xff more"], key=b"k", headers={"tenant": b"blue"})
    kafka.produce(topic, [None, b"", message("b"), b""])
    partitions, metrics = RecordedPartitions(), Metrics()

    context = Context("kafka", metrics=metrics)
    async with receiving(partitions, context, **reads(kafka, topic, dead_letter={"topic": aside})):
        await until(lambda: partitions.opened and partitions.opened[0].position == 7, "all of them")

    assert partitions.names == ["a", "b"]
    assert [record.offset for record in partitions.opened[0].records] == list(range(7))
    assert f"{topic}[0] offset 1 can't be read (nor can 1 more behind it): not an ExportTrace" in caplog.text
    assert caplog.text.count("can't be read") == 1
    assert metrics.counter("otelcol_kafka_receiver_unmarshal_failed_spans", "").values == {(topic, "0"): 2}
    first, second = kafka.consume(aside)
    assert (first.key, first.value, second.value) == (b"k", b"\xff poison", b"\xff more")
    assert first.headers["podtrail.reason"].startswith(b"not an ExportTraceServiceRequest")
    assert {name: value for name, value in first.headers.items() if name != "podtrail.reason"} == {
        "tenant": b"blue",
        "podtrail.topic": topic.encode(),
        "podtrail.partition": b"0",
        "podtrail.offset": b"1",
    }


async def test_a_topic_that_is_not_there_is_told_and_read_once_it_is(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"{kafka.topic()}-later"
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: f"topic {topic} is not there" in caplog.text, "a line")
        kafka.topic(topic)
        kafka.produce(topic, [message("a")])
        await until(lambda: partitions.names == ["a"], "the record")

    assert caplog.text.count("is not there") == 1


async def test_a_topic_that_is_deleted_is_given_up_and_told(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    topic, other = kafka.topic(), kafka.topic()
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic, traces={"topics": [topic, other]})):
        await until(lambda: partitions.alive == 2, "both topics")
        kafka.delete_topic(topic)
        await until(lambda: f"topic {topic} is not there" in caplog.text, "a line")
        await until(lambda: partitions.places == {(other, 0)}, "the other topic alone")
        kafka.produce(other, [message("a")])
        await until(lambda: partitions.names == ["a"], "the record")


async def test_records_that_retention_took_while_nobody_read_are_told_and_counted(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    async with receiving(RecordedPartitions(), **reads(kafka, topic)):
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 1, "a commit")
    kafka.produce(topic, [message(name) for name in "bcde"])
    kafka.delete_records(topic, 0, before=4)
    partitions, metrics = RecordedPartitions(), Metrics()

    async with receiving(partitions, Context("kafka", metrics=metrics), **reads(kafka, topic)):
        await until(lambda: partitions.names == ["e"], "what is left")

    assert f"{topic}[0] begins at 4, records from 1 on were still needed: 3 are gone" in caplog.text
    assert metrics.counter("podtrail_kafka_receiver_missing_records_total", "").values == {(topic, "0"): 3}


async def test_records_that_retention_takes_from_a_reader_that_lags_are_told_and_counted(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message(f"{number}", 250_000) for number in range(300)])
    partitions = RecordedPartitions(lambda partition: partition.has_room.clear())
    metrics = Metrics()

    async with receiving(partitions, Context("kafka", metrics=metrics), **reads(kafka, topic)) as receiver:
        await until(lambda: receiver.paused, "the partition to be full")
        kafka.delete_records(topic, 0, before=299)
        partitions.opened[0].has_room.set()
        await until(lambda: partitions.names and partitions.names[-1] == "299", "the last record")

    gone = metrics.counter("podtrail_kafka_receiver_missing_records_total", "").values[topic, "0"]
    assert gone > 0
    assert len(partitions.names) + gone == 300
    assert caplog.text.count("were still needed") == 1


async def test_what_is_said_to_be_read_beyond_the_end_is_not_believed(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    kafka.commit(f"group-{topic}", topic, {0: (1, '{"at": "1.0.0.1.0.0", "position": 1000000, "time": 0}')})
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.names == ["b"], "the record behind what is committed")

    assert partitions.opened[0].committed == Commit(1, "")
    assert f"{topic}[0] ends at 2, before offset 1000000 that its last owner is said to have read" in caplog.text


@pytest.mark.parametrize("records", [1, 2, 5])
async def test_a_topic_made_anew_under_a_reader_is_read_from_its_beginning(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, records: int
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)) as receiver:
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 2, "a commit")
        kafka.delete_topic(topic)
        kafka.topic(topic)
        kafka.produce(topic, [message(f"{number}") for number in range(records)])
        expected = [f"{number}" for number in range(records)]
        await until(lambda: receiver.receiver.owned and partitions.opened[-1].bodies == expected, "the new records")

    assert "made anew" in caplog.text or "is not there" in caplog.text


@pytest.mark.parametrize(
    ("known", "records", "told"),
    [
        (True, "c", "topic {} was made anew since the group has committed offset 2"),
        (True, "cdefg", "topic {} was made anew since the group has committed offset 2"),
        (False, "c", "{}[0] ends at 1, before what the group has committed (2)"),
    ],
)
async def test_what_was_committed_of_a_topic_of_the_same_name_is_finished_and_the_new_one_read(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, known: bool, records: str, told: str
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    async with receiving(RecordedPartitions(), **reads(kafka, topic)):
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 2, "a commit")
    old = kafka.committed(f"group-{topic}", topic)
    kafka.delete_topic(topic)
    kafka.topic(topic)
    kafka.commit(f"group-{topic}", topic, old if known else {0: (2, "")})
    kafka.produce(topic, [message(name) for name in records])

    partitions = RecordedPartitions()
    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.names == list(records), "the new records")

    before, _ = partitions.opened
    assert before.finished
    assert told.format(topic) in caplog.text


@pytest.mark.parametrize(
    ("listener", "settings", "told"),
    [
        (SASL_PLAINTEXT, {"auth": {"sasl": SASL}}, "refuses the credentials of auth::sasl"),
        (PLAINTEXT, {"auth": {"sasl": SASL}}, "remove auth::sasl"),
        (SSL, {}, "wants TLS or SASL"),
        (SSL, {"tls": {"insecure_skip_verify": True}}, "wants a client's certificate"),
        (PLAINTEXT, {"tls": {"insecure_skip_verify": True}}, "remove tls"),
    ],
)
async def test_a_way_in_that_is_not_the_brokers_is_one_line_with_the_key(
    secured_kafka: Kafka, caplog: pytest.LogCaptureFixture, listener: str, settings: dict[str, Any], told: str
) -> None:
    topic = secured_kafka.topic()
    config = reads(secured_kafka, topic, **settings, brokers=secured_kafka.addresses(listener))

    async with receiving(RecordedPartitions(), **config):
        await until(lambda: told in caplog.text, "a line")

    assert caplog.text.count(told) == 1


async def test_brokers_that_are_away_at_the_start_and_stall_later_are_waited_for(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    (broker,) = kafka.brokers
    broker.kill()
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: "no answer from 127.0.0.1" in caplog.text, "a line")
        broker.start()
        await until(lambda: partitions.alive == 1, "the partition")
        kafka.produce(topic, [message("a")])
        await until(lambda: partitions.names == ["a"], "the record")
        assert _lines(caplog, "no answer from", "no broker answers at") == 1
        caplog.clear()
        broker.stall()
        await until(lambda: _lines(caplog, "no answer from", "no broker answers at"), "another line")
        broker.go_on()
        kafka.produce(topic, [message("b")])
        await until(lambda: partitions.names[-1] == "b", "the next record")


async def test_a_broker_that_stalls_at_the_start_is_waited_for(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    partitions = RecordedPartitions()
    kafka.brokers[0].stall()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: "no answer from 127.0.0.1" in caplog.text, "a line")
        kafka.brokers[0].go_on()
        await until(lambda: partitions.names == ["a"], "the record")

    assert _lines(caplog, "no answer from", "no broker answers at") == 1


class OftenRefused(RecordedPartitions):
    """Partitions of which the second can't be opened some times, while there is something to commit of the first."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.refusing = False
        self.commit_begins = asyncio.Event()

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
        if partition == 1 and self.times:
            self.times -= 1
            self.refusing = True
            await self.commit_begins.wait()
            self.refusing = False
            self.commit_begins.clear()
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "nobody says what is committed"))
        opened = CommittedMeanwhile(self, (topic, partition), committed, checkpoint)
        self.opened.append(opened)
        return opened


class CommittedMeanwhile(RecordedPartition):
    """One of them: there is more to commit while the second is refused."""

    def __init__(self, partitions: OftenRefused, *opened: "tuple[str, int] | Commit | bytes | None") -> None:
        super().__init__(*opened)  # type: ignore[arg-type]
        self._partitions = partitions

    def commit(self) -> Commit:
        found = super().commit()
        if not self._partitions.refusing:
            return found
        self._partitions.commit_begins.set()
        return Commit(found.offset, f"{found.metadata} ")


async def test_a_rebalance_that_fails_while_a_commit_is_on_its_way_is_told_and_gone_through_again(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(receiver, "_AGAIN_SECONDS", 0.05)
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    partitions = OftenRefused(5)

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 1, "a commit")
        kafka.add_partitions(topic, 2)
        await until(lambda: partitions.places == {(topic, 0), (topic, 1)}, "both partitions")

    assert partitions.times == 0
    assert "leaves the group" in caplog.text
    assert "nobody says what is committed" in caplog.text


async def test_a_broker_that_dies_while_partitions_are_taken_up_is_waited_for(kafka: Kafka) -> None:
    """Its error comes in the very call that has the partitions assigned."""
    topic = kafka.topic()
    (broker,) = kafka.brokers
    partitions = RecordedPartitions(lambda opened: None if partitions.opened else broker.kill())

    async with receiving(partitions, **reads(kafka, topic, checkpoints={"enabled": False})):
        await until(lambda: partitions.alive == 1, "the partition")
        broker.start()
        kafka.produce(topic, [message("a")])
        await until(lambda: partitions.names == ["a"], "the record")


def _lines(caplog: pytest.LogCaptureFixture, *parts: str) -> int:
    """Return how many lines have one of these in them."""
    return sum(any(part in record.getMessage() for part in parts) for record in caplog.records)
