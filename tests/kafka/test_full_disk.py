"""A broker with a disk that is full: its partitions there are told and waited for, the others go on."""

import logging
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from podtrail.component import Ledger
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka
from tests.kafka.recorded_partitions import RecordedPartitions, reads, receiving, until
from tests.kafka.test_kafka_exporter import batch_of, make, queued, span_counts

pytestmark = pytest.mark.kafka

TRACES = range(1, 31)
"""Of a megabyte each: about fifteen for either partition."""


@pytest.fixture
def kafka_on_a_small_disk(start_kafka: Callable[..., Kafka]) -> Iterator[Kafka]:
    """A broker with two disks, one of them small."""
    mountable = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(mountable, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs in a namespace of its own (unshare --map-root-user --mount)")
    kafka = start_kafka(
        small_disk="8m", properties={"log.index.size.max.bytes": "4096", "offsets.topic.num.partitions": "1"}
    )
    yield kafka
    kafka.stop()


async def test_partitions_on_a_full_disk_are_told_and_go_on_with_a_larger_one(
    kafka_on_a_small_disk: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = kafka_on_a_small_disk
    (broker,) = kafka.brokers
    assert broker.small_disk is not None
    caplog.set_level(logging.INFO, "podtrail")
    topic = kafka.topic(partitions=2)
    first, second = RecordedPartitions(), RecordedPartitions()
    config = reads(kafka, topic, checkpoints={"enabled": False})
    exporter = make(kafka.addresses(), timeout="3s", traces={"topic": topic}, partition_by="trace_id")

    async with queued(exporter) as (queue, ledger):
        async with receiving(first, **config):
            await until(lambda: first.alive == 2, "both partitions")
            for trace in TRACES:
                queue.offer(batch_of(trace, name="x" * 900_000), ledger)
            await until(lambda: "without a leader" in caplog.text, "a line of the receiver")
            await until(lambda: f"topic {topic} acknowledged nothing" in caplog.text, "a line of the exporter")
            (full,) = (number for number in (0, 1) if f"{topic}[{number}] without a leader" in caplog.text)
            await until(lambda: len(first.of(topic, 1 - full).bodies) > 10, "the other")
        async with receiving(second, **{**config, "group_id": "another"}):
            await until(lambda: second.places == {(topic, 1 - full)}, "the partition that has a leader")
            caplog.clear()
            broker.kill()
            broker.small_disk.enlarge("64m")
            broker.start()
            await queue.drain(DEADLINE, patient=True)
            await until(lambda: len(second.names) >= len(TRACES), "all of them")

        assert ledger == Ledger(delivered=len(TRACES))

    assert f"{topic}[{full}] with a leader again" in caplog.text
    assert span_counts(kafka.consume(topic)).keys() == set(TRACES)
