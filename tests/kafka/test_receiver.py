"""The `kafka` receiver on a real broker: what it reads, in which order, and where it goes on."""

import asyncio
import base64
import time
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from podtrail_receivers.kafka import commits, consumer_thread, membership
from podtrail_receivers.kafka.checkpoint_topic import Pointer
from podtrail_receivers.kafka.messages_at_once import MOST_BYTES

from podtrail.component import Context, Metrics
from podtrail.otlp.surroundings import resource_fields
from tests.kafka.cluster import Kafka
from tests.kafka.recorded_partitions import RecordedPartition, RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message

pytestmark = pytest.mark.kafka

MIB = 1 << 20


async def test_records_are_taken_in_order_with_offset_time_and_the_headers_that_are_asked_for(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    headers = {"tenant": b"blue", "other": b"x"}
    kafka.produce(topic, [message("a"), message("b")], partition=1, headers=headers, time_ms=1_700_000_000_000)
    partitions = RecordedPartitions()
    extraction = {"extract_headers": True, "headers": ["tenant", "absent"]}

    async with receiving(partitions, **reads(kafka, topic, header_extraction=extraction)):
        await until(lambda: len(partitions.names) == 2, "both records")

    (one,) = [partition for partition in partitions.opened if partition.place == (topic, 1)]
    assert one.bodies == ["a", "b"]
    assert [(record.offset, record.time) for record in one.records] == [
        (0, 1_700_000_000_000_000_000),
        (1, 1_700_000_000_000_000_000),
    ]
    batch = one.records[0].batch
    assert batch is not None
    assert resource_fields(batch.groups[0].resource).attributes == {"kafka.header.tenant": "blue"}


async def test_a_new_group_begins_at_the_end_unless_it_is_told_to_begin_at_the_beginning(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("before")])
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic, initial_offset="latest")):
        await until(lambda: kafka.committed(f"group-{topic}", topic), "the beginning to be committed")
        kafka.produce(topic, [message("after")])
        await until(lambda: partitions.names, "a record")

    assert partitions.names == ["after"]


async def test_what_was_taken_is_committed_and_the_next_goes_on_there(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    first = RecordedPartitions()
    async with receiving(first, **reads(kafka, topic)):
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 2, "a commit")

    kafka.produce(topic, [message("c")])
    second = RecordedPartitions()
    async with receiving(second, **reads(kafka, topic)):
        await until(lambda: second.names, "the third record")

    assert first.opened[0].dropped
    assert second.names == ["c"]


async def test_a_stop_commits_what_was_taken_since_the_last_interval(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic, autocommit={"interval": "1h"})):
        await until(lambda: partitions.names, "the record")

    assert kafka.committed(f"group-{topic}", topic)[0][0] == 1


async def test_without_autocommit_whatever_is_new_is_committed_at_once(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])

    async with receiving(RecordedPartitions(), **reads(kafka, topic, autocommit={"enable": False, "interval": "1h"})):
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 1, "a commit")


async def test_a_checkpoint_of_many_chunks_comes_back_with_the_commit_that_names_it(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    state = bytes(range(256)) * 10_000

    def checkpointing(partition: RecordedPartition) -> None:
        partition.state, partition.checkpoint_wanted = state, True

    async with receiving(RecordedPartitions(checkpointing), **reads(kafka, topic)):
        await until(lambda: '"at": "' in kafka.committed(f"group-{topic}", topic).get(0, (0, ""))[1], "a checkpoint")
    second = RecordedPartitions()
    async with receiving(second, **reads(kafka, topic)):
        await until(lambda: second.opened, "the partition")

    assert second.opened[0].restored == state + b"!"


async def test_a_stop_writes_a_checkpoint_though_nobody_knows_if_the_last_one_is_committed(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    first = RecordedPartitions()
    async with receiving(first, **reads(kafka, topic)):
        await until(lambda: first.names, "the record")
    committed = kafka.committed(f"group-{topic}", topic)

    def checkpointing(partition: RecordedPartition) -> None:
        partition.state, partition.checkpoint_wanted = b"second", True

    second, places = RecordedPartitions(checkpointing), [first.opened[0].at]
    monkeypatch.setattr(commits, "_AGAIN_SECONDS", 3600.0)  # nothing is committed once it has a partition
    async with receiving(second, **reads(kafka, topic, autocommit={"interval": "1ms"})):
        await until(lambda: second.opened and second.opened[0].at, "a checkpoint")
        places.append(second.opened[0].at)
        assert kafka.committed(f"group-{topic}", topic) == committed
        second.opened[0].state = b"third"
    third = RecordedPartitions()
    async with receiving(third, **reads(kafka, topic)):
        await until(lambda: third.opened, "the partition")

    assert third.opened[0].restored == b"third!"
    slots = [pointer.slot for at in (*places, second.opened[0].at) if at and (pointer := Pointer.parse(at))]
    assert sorted(slots) == [0, 1, 2], "none has taken the room of one that a commit may name"


async def test_a_stop_that_has_no_time_for_a_checkpoint_says_so(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    partitions = RecordedPartitions()
    monkeypatch.setattr(membership, "_KEEPING_SECONDS", 0.0)
    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.names, "the record")

    assert f"{topic}[0]: no checkpoint could be written within 0 s" in caplog.text
    assert kafka.committed(f"group-{topic}", topic)[0][0] == 1


async def test_a_checkpoint_that_is_gone_leaves_the_partition_to_its_commit(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    async with receiving(RecordedPartitions(), **reads(kafka, topic)):
        await until(lambda: kafka.committed(f"group-{topic}", topic).get(0, (0,))[0] == 1, "a commit")
    kafka.delete_topic(f"checkpoints-{topic}")

    second = RecordedPartitions()
    async with receiving(second, **reads(kafka, topic)):
        await until(lambda: second.opened, "the partition")

    assert second.opened[0].restored is None
    assert second.opened[0].committed is not None
    assert second.opened[0].committed.offset == 1


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_members_share_the_partitions_and_the_last_one_gets_all(
    kafka: Kafka, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic(partitions=4)
    one, other = RecordedPartitions(), RecordedPartitions()
    config = reads(kafka, topic, group_rebalance_strategies=[strategy])

    async with receiving(one, **config):
        await until(lambda: one.alive == 4, "all partitions")
        for partition in range(4):
            kafka.produce(topic, [message("a")] * 50, partition=partition)  # to be committed while the other joins
        async with receiving(other, **config):
            await until(lambda: (one.alive, other.alive) == (2, 2), "two each")
        await until(lambda: one.alive == 4, "all partitions again")

    kept = 4 if strategy == "range" else 2
    assert len([partition for partition in one.opened if partition.dropped]) >= kept
    assert kafka.committed(f"group-{topic}", topic).keys() == {0, 1, 2, 3}
    assert "can't be committed" not in caplog.text


class HeldPartitions(RecordedPartitions):
    """Partitions whose last spans are delivered only when somebody lets them be."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.let = asyncio.Event()

    async def open(self, *given: Any, **more: Any) -> RecordedPartition:
        opened = await super().open(*given, **more)

        async def delivered() -> None:
            self.asked.set()
            await self.let.wait()

        opened.delivered = delivered  # type: ignore[method-assign]
        return opened


async def test_a_member_that_leaves_in_a_rebalance_commits_all_that_it_has_done(kafka: Kafka) -> None:
    """While it gives up its partitions, the group begins another generation."""
    topic = kafka.topic(partitions=6)
    leaving, held, third = HeldPartitions(), HeldPartitions(), RecordedPartitions()
    config = reads(kafka, topic, autocommit={"interval": "1h"}, session_timeout="60s")

    async with receiving(held, **config), receiving(leaving, **config) as leaver:
        held.let.set()
        await until(lambda: (held.alive, leaving.alive) == (3, 3), "three each")
        for partition in range(6):
            kafka.produce(topic, [message("a")], partition=partition)
        await until(lambda: len(leaving.names) == len(held.names) == 3, "the records")
        held.let.clear()
        held.asked.clear()
        leaving.asked.clear()
        async with receiving(third, **config):
            await held.asked.wait()
            await leaving.asked.wait()
            leaving.let.set()
            await until(lambda: leaving.alive == 2, "one of them to be given up")
            leaving.let.clear()
            leaving.asked.clear()
            leaver.ended.cancel()
            await leaving.asked.wait()
            held.let.set()
            await until(lambda: third.alive == 2, "the next generation")
            leaving.let.set()
            await asyncio.wait([leaver.ended])
    mine = {partition.place[1] for partition in leaving.opened}
    committed = kafka.committed(f"group-{topic}", topic)
    assert {number: committed.get(number, (0,))[0] for number in mine} == dict.fromkeys(mine, 1)


async def test_a_static_member_that_comes_back_gets_its_partitions_and_the_others_keep_theirs(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    one, other, again = RecordedPartitions(), RecordedPartitions(), RecordedPartitions()
    config = reads(kafka, topic, session_timeout="300s")  # until the other comes back its partition is kept for it

    async with receiving(one, **config, group_instance_id="one"):
        async with receiving(other, **config, group_instance_id="other"):
            await until(lambda: (one.alive, other.alive) == (1, 1), "one each")
        async with receiving(again, **config, group_instance_id="other"):
            await until(lambda: again.alive == 1, "its partition")
            assert one.alive == 1

    assert again.opened[0].place == other.opened[-1].place


async def test_regular_expressions_choose_topics_but_those_excluded_and_new_ones_join(kafka: Kafka) -> None:
    prefix = kafka.topic()
    kafka.topic(f"{prefix}-a")
    kafka.topic(f"{prefix}-not")
    partitions = RecordedPartitions()
    traces = {"topics": [f"^{prefix}-.*"], "exclude_topics": ["-not$"]}

    async with receiving(partitions, **reads(kafka, prefix, traces=traces)):
        await until(lambda: partitions.alive == 1, "the topic that is there")
        kafka.topic(f"{prefix}-b")
        await until(lambda: partitions.places == {(f"{prefix}-a", 0), (f"{prefix}-b", 0)}, "both")


async def test_partitions_that_are_added_are_read(kafka: Kafka) -> None:
    topic = kafka.topic()
    partitions = RecordedPartitions()

    async with receiving(partitions, **reads(kafka, topic)):
        await until(lambda: partitions.alive == 1, "the partition")
        kafka.add_partitions(topic, 3)
        await until(lambda: partitions.alive == 3, "the new ones")


async def test_messages_in_json_are_read_where_the_configuration_says_so(kafka: Kafka) -> None:
    topic = kafka.topic()
    request = ExportTraceServiceRequest.FromString(message("a"))
    told = MessageToJson(request)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    for id in (span.trace_id, span.span_id):  # OTLP's JSON has ids in hexadecimal
        told = told.replace(base64.b64encode(id).decode(), id.hex())
    kafka.produce(topic, [told.encode()])
    partitions = RecordedPartitions()

    traces = {"topics": [topic], "encoding": "otlp_json"}
    async with receiving(partitions, **reads(kafka, topic, traces=traces)):
        await until(lambda: partitions.names == ["a"], "the record")


async def test_a_partition_without_room_waits_within_bounds_and_the_others_go_on(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_thread, "_TAKING_SECONDS", 0.001)  # what is produced below keeps the loop for longer
    topic = kafka.topic(partitions=2)
    kafka.produce(topic, [message(f"{number}", 250_000) for number in range(240)], partition=0)
    kafka.produce(topic, [message(f"{number}") for number in range(500)], partition=1)

    def prepare(partition: RecordedPartition) -> None:
        if partition.place[1] == 0:
            partition.has_room.clear()

    partitions, share = RecordedPartitions(prepare), 16 * MIB

    async with receiving(partitions, **reads(kafka, topic)) as receiver:
        await until(lambda: receiver.buffered > share, "the first partition to wait")
        kafka.produce(topic, [message(f"{number}") for number in range(500)], partition=1)
        await until(lambda: len(partitions.of(topic, 1).bodies) == 1000, "the second partition")
        most = receiver.buffered
        partitions.of(topic, 0).has_room.set()
        await until(lambda: len(partitions.of(topic, 0).bodies) == 240, "the first partition")

    assert most < share + MOST_BYTES, "what comes beside small messages is not taken by the thousand"
    assert partitions.of(topic, 0).bodies == [str(number) for number in range(240)]


async def test_gauges_and_counters_tell_of_each_partition(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    metrics = Metrics()

    def prepare(partition: RecordedPartition) -> None:
        partition.oldest, partition.undecided, partition.repeated = time.time_ns() - 10**9, 7, 3

    partitions = RecordedPartitions(prepare)
    telemetry = {"metrics": {"kafka_receiver_records_delay": {"enabled": True}}}
    context = Context("kafka", metrics=metrics)
    async with receiving(partitions, context, **reads(kafka, topic, telemetry=telemetry)):
        await until(lambda: len(partitions.names) == 2, "the records")
        labels = (topic, "0")
        of_one = ("kafka", *labels)
        assert _gauge(metrics, "otelcol_kafka_receiver_current_offset")[of_one] == 1
        assert _gauge(metrics, "otelcol_kafka_receiver_offset_lag")[of_one] == 0
        assert _gauge(metrics, "podtrail_kafka_receiver_undecided_spans")[of_one] == 7
        assert _gauge(metrics, "podtrail_kafka_receiver_oldest_undecided_seconds")[of_one] >= 1

    assert _gauge(metrics, "otelcol_kafka_receiver_current_offset") == {}
    counted = {name: metrics.counter(name, "").values for name in _COUNTERS}
    assert counted == {
        "otelcol_kafka_receiver_records": {labels: 2},
        "otelcol_kafka_receiver_partition_start": {(): 1},
        "otelcol_kafka_receiver_partition_close": {(): 1},
        "podtrail_kafka_receiver_repeated_decisions_total": {labels: 3},
    }
    assert metrics.histogram("otelcol_kafka_receiver_records_delay", "", ()).counts.keys() == {labels}


async def test_two_receivers_of_one_topic_tell_each_of_its_own_partitions(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    metrics = Metrics()
    one, other = RecordedPartitions(), RecordedPartitions()

    async with (
        receiving(one, Context("kafka/one", metrics=metrics), **reads(kafka, topic)),
        receiving(other, Context("kafka/other", metrics=metrics), **reads(kafka, topic, group_id=f"other-{topic}")),
    ):
        await until(lambda: len(one.names) == len(other.names) == 2, "the records, by both")
        lags = _gauge(metrics, "otelcol_kafka_receiver_offset_lag")

    assert lags == {("kafka/one", topic, "0"): 0, ("kafka/other", topic, "0"): 0}


_COUNTERS = (
    "otelcol_kafka_receiver_records",
    "otelcol_kafka_receiver_partition_start",
    "otelcol_kafka_receiver_partition_close",
    "podtrail_kafka_receiver_repeated_decisions_total",
)


def _gauge(metrics: Metrics, name: str) -> dict[Any, float]:
    return metrics.gauge(name, "").values()
