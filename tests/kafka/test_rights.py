"""Users without a right, on a broker that asks: one line that names what to grant, and on once it is granted."""

import logging
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from podtrail.component import Ledger
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import GUEST, PASSWORD, SASL_PLAINTEXT, Kafka
from tests.kafka.recorded_partitions import RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message
from tests.kafka.test_kafka_exporter import batch_of, make, queued, span_counts

pytestmark = pytest.mark.kafka

LOGIN = {"auth": {"sasl": {"mechanism": "PLAIN", "username": GUEST, "password": PASSWORD}}}


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "podtrail")


def grant(kafka: Kafka, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Let the user do something."""
    of_user = (ResourcePatternType.LITERAL, f"User:{GUEST}", "*")
    rights = [AclBinding(kind, name, *of_user, each, AclPermissionType.ALLOW) for each in operations]
    admin = kafka.admin()
    for future in admin.create_acls(rights).values():
        future.result(DEADLINE)


async def test_the_receiver_is_told_which_right_it_lacks_and_reads_once_it_has_it(
    secured_kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = secured_kafka
    topic = kafka.topic()
    kafka.produce(topic, [message("a")])
    checkpoints = kafka.topic(f"checkpoints-{topic}", cleanup_policy="compact")
    partitions = RecordedPartitions()
    config = reads(kafka, topic, brokers=kafka.addresses(SASL_PLAINTEXT), **LOGIN)

    async with receiving(partitions, **config):
        lacks = f"topic {checkpoints} of checkpoints: grant it DESCRIBE, READ and WRITE"
        await until(lambda: lacks in caplog.text, "a line about checkpoints")
        grant(kafka, ResourceType.TOPIC, checkpoints, AclOperation.READ, AclOperation.WRITE)
        lacks = f"don't let this user read as group group-{topic}: grant it READ on the group; trying again"
        await until(lambda: lacks in caplog.text, "a line about the group")
        grant(kafka, ResourceType.GROUP, f"group-{topic}", AclOperation.READ)
        lacks = f"don't let this user read topic {topic}: grant it READ; trying again"
        await until(lambda: lacks in caplog.text, "a line about the topic")
        grant(kafka, ResourceType.TOPIC, topic, AclOperation.READ)
        await until(lambda: partitions.names == ["a"], "the record")

    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len([line for line in told if "let this user" in line]) == 3


async def test_without_the_right_to_copy_an_unreadable_message_its_partition_waits_and_others_go_on(
    secured_kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = secured_kafka
    topic, aside = kafka.topic(partitions=2), kafka.topic()
    kafka.produce(topic, [b"\xff poison", message("behind")], partition=0)
    kafka.produce(topic, [message("other")], partition=1)
    grant(kafka, ResourceType.TOPIC, topic, AclOperation.READ)
    grant(kafka, ResourceType.GROUP, f"group-{topic}", AclOperation.READ)
    partitions = RecordedPartitions()
    config = reads(kafka, topic, brokers=kafka.addresses(SASL_PLAINTEXT), dead_letter={"topic": aside}, **LOGIN)

    async with receiving(partitions, **{**config, "checkpoints": {"enabled": False}}):
        await until(lambda: f"{topic}[0] waits to have a message that can't be read copied" in caplog.text, "a line")
        await until(lambda: partitions.names == ["other"], "the other partition")
        grant(kafka, ResourceType.TOPIC, aside, AclOperation.WRITE)
        await until(lambda: "behind" in partitions.names, "what is behind it")

    (kept,) = kafka.consume(aside)
    assert (kept.value, kept.headers["podtrail.offset"]) == (b"\xff poison", b"0")
    assert caplog.text.count("waits to have a message") == 1
    assert len(partitions.opened) == 2, "nobody had to join the group again"


@pytest.mark.parametrize("acks", [1, "all"])
async def test_the_exporter_is_told_which_right_it_lacks_and_delivers_once_it_has_it(
    secured_kafka: Kafka, acks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = secured_kafka
    topic = kafka.topic()
    config = {"traces": {"topic": topic}, "producer": {"required_acks": acks}, **LOGIN}
    brokers = kafka.addresses(SASL_PLAINTEXT)
    async with queued(make(brokers, timeout="30s", **config)) as (queue, ledger):
        queue.offer(batch_of(1), ledger)
        await until(lambda: f"don't let this user write to topic {topic}: grant it WRITE" in caplog.text, "a line")
        grant(kafka, ResourceType.TOPIC, topic, AclOperation.WRITE)
        await queue.drain(DEADLINE, patient=True)
        assert ledger == Ledger(delivered=1)

    assert span_counts(kafka.consume(topic)) == {1: 1}
    assert caplog.text.count("let this user") == 1
