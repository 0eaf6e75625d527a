"""Partitions that nobody in a group has, since a member came back by its name in the middle of a rebalance."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from podtrail_receivers.kafka import unread

from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka
from tests.kafka.recorded_partitions import RecordedPartitions, reads, receiving, until
from tests.kafka.spans import message

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def stuck(kafka: Kafka, topic: str, name: str) -> AsyncIterator[threading.Event]:
    """A member that has all partitions and stands still when it is to give some of them up, until it is the end."""
    ending, has_all, gives_up = threading.Event(), threading.Event(), threading.Event()

    def revoke(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        gives_up.set()
        ending.wait()

    def run() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap(),
                "group.id": f"group-{topic}",
                "group.instance.id": name,
                "partition.assignment.strategy": "cooperative-sticky",
                "heartbeat.interval.ms": 500,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic], on_assign=lambda *_: has_all.set(), on_revoke=revoke)
        while not ending.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        await asyncio.to_thread(has_all.wait)
        yield gives_up
    finally:
        ending.set()
        await asyncio.to_thread(thread.join)


async def test_partitions_that_nobody_has_are_told_and_read_again(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unread, "_LOOKING_SECONDS", 1.0)
    caplog.set_level(logging.INFO, "podtrail")
    topic = kafka.topic(partitions=4)
    config = reads(kafka, topic, session_timeout="120s")
    one, other = RecordedPartitions(), RecordedPartitions()

    async with stuck(kafka, topic, "one") as gives_up, receiving(other, **config, group_instance_id="other"):
        await asyncio.to_thread(gives_up.wait)
        async with receiving(one, **config, group_instance_id="one"):
            await until(lambda: (one.alive, other.alive) == (2, 2), "two partitions each")
            for partition in range(4):
                kafka.produce(topic, [message(str(partition))], partition=partition)
            await until(lambda: sorted(one.names + other.names) == ["0", "1", "2", "3"], "a record of each")

    assert f"nobody in the group group-{topic} reads {topic}[" in caplog.text


async def test_what_joining_again_does_not_help_is_tried_ever_more_rarely_by_one_member(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "_LOOKING_SECONDS", 0.0)
    topic, other = kafka.topic(), kafka.topic()
    group = f"group-{topic}"
    watches = {name: unread.UnreadWatch(group, lambda name: name in (topic, other)) for name in ("chosen", "another")}
    client = kafka.admin()

    async with stuck(kafka, topic, "one"):
        (member,) = client.describe_consumer_groups([group])[group].result(DEADLINE).members
        names = {"chosen": member.member_id, "another": "somebody else"}
        told = {
            name: [at for at in range(1, 10) if await asyncio.to_thread(watch.look, client, names[name])]
            for name, watch in watches.items()
        }

    assert told == {"chosen": [3, 9], "another": []}


async def test_a_rebalance_in_between_has_it_tried_no_sooner(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "_LOOKING_SECONDS", 0.0)
    topic, other = kafka.topic(), kafka.topic()
    group = f"group-{topic}"
    watch = unread.UnreadWatch(group, lambda name: name in (topic, other))
    client = kafka.admin()
    properties = {"bootstrap.servers": kafka.bootstrap(), "group.id": group, "log_level": 0}
    named, passing = Consumer(properties | {"group.instance.id": "one"}), Consumer(properties)

    def told() -> Any:
        return client.describe_consumer_groups([group])[group].result(DEADLINE)

    def poll_until(holds: Callable[[], bool], consumer: Consumer) -> None:
        while not holds():
            consumer.poll(0.1)

    def looks(member: str) -> list[int]:
        return [at for at in range(1, 8) if watch.look(client, member)]

    def run() -> list[list[int]]:
        named.subscribe([topic])
        poll_until(lambda: bool(named.assignment()), named)
        (member,) = told().members
        found = [looks(member.member_id)]
        passing.subscribe([topic])
        poll_until(
            lambda: told().state is not ConsumerGroupState.STABLE, passing
        )  # the other one does not give up what it has: it is not polled
        found.append(looks(member.member_id))
        passing.close()
        poll_until(lambda: told().state is ConsumerGroupState.STABLE, named)
        return [*found, looks(member.member_id)]

    try:
        assert await asyncio.to_thread(run) == [[3], [], [6]]
    finally:
        named.close()
