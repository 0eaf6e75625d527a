"""`exactly_once` on a real broker: what is read, written and committed is seen together, whatever comes between."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from podtrail_receivers.kafka import consumer_thread, membership
from podtrail_receivers.kafka.keeping import KeptAside
from podtrail_receivers.kafka.transaction_cycle import TransactionCycle

from podtrail.component import Commit, PartitionRecord
from podtrail.transport.kafka.message import MessagePlace
from podtrail.transport.kafka.transactions import Transactions
from tests.kafka.cluster import Kafka
from tests.kafka.recorded_partitions import (
    Receiving,
    RecordedPartition,
    RecordedPartitions,
    names,
    reads,
    receiving,
    until,
)
from tests.kafka.spans import message

pytestmark = pytest.mark.kafka


class CopiedPartition(RecordedPartition):
    """One partition: what is taken is written to a topic, in the transaction that is open."""

    def __init__(self, partitions: "CopiedPartitions", *opened: "tuple[str, int] | Commit | bytes | None") -> None:
        super().__init__(*opened)  # type: ignore[arg-type]
        self._partitions = partitions
        self._under_way: list[asyncio.Future[MessagePlace]] = []
        self.wants_checkpoint_when_delivered = False

    async def take(self, records: Sequence[PartitionRecord]) -> None:
        await super().take(records)
        transactions = self._partitions.transactions
        spoiling, self._partitions.spoiling = self._partitions.spoiling, ""
        if spoiling:
            self._under_way.append(transactions.produce(spoiling, b"x" * 2000))
        for record in records:
            for name in names(record):
                self._under_way.append(transactions.produce(self._partitions.topic, name.encode()))

    async def delivered(self) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._under_way and self.wants_checkpoint_when_delivered:
            self.wants_checkpoint_when_delivered, self.checkpoint_wanted = False, True


class CopiedPartitions(RecordedPartitions):
    """All partitions of a receiver, copied to a topic."""

    transactions: Transactions

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.spoiling = ""
        """A topic that refuses what is written to it once."""
        self.want_checkpoints_when_delivered = False

    async def open(
        self,
        topic: str,
        partition: int,
        committed: Commit | None,
        checkpoint: bytes | None,
        *,
        keeps_checkpoints: bool = True,
        topic_id: str = "",
    ) -> CopiedPartition:
        opened = CopiedPartition(self, (topic, partition), committed, checkpoint)
        opened.topic_id = topic_id
        opened.wants_checkpoint_when_delivered = self.want_checkpoints_when_delivered
        self.opened.append(opened)
        return opened

    def begin(self, running: Receiving) -> None:
        """Write in the transactions of this receiver."""
        assert running.receiver.transactions is not None
        self.transactions = running.receiver.transactions


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "podtrail")


def once(kafka: Kafka, topic: str, **more: Any) -> dict[str, Any]:
    return reads(kafka, topic, exactly_once=True, **more)


def seen(kafka: Kafka, topic: str, *, uncommitted: bool = False) -> list[str]:
    return sorted((record.value or b"").decode() for record in kafka.consume(topic, uncommitted=uncommitted))


async def test_what_is_written_is_seen_when_what_was_read_is_committed(kafka: Kafka) -> None:
    topic, out = kafka.topic(), kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    partitions = CopiedPartitions(out)

    async with receiving(partitions, **once(kafka, topic, autocommit={"interval": "1h"})) as running:
        partitions.begin(running)
        await until(lambda: seen(kafka, out, uncommitted=True) == ["a", "b"], "both to be written")
        assert seen(kafka, out) == []
        assert kafka.committed(f"group-{topic}", topic) == {}

    assert seen(kafka, out) == ["a", "b"]
    assert kafka.committed(f"group-{topic}", topic)[0][0] == 2


def _is_elsewhere(partition: RecordedPartition, before: str | None) -> bool:
    return partition.at != before


async def test_a_transaction_ends_with_the_last_of_its_checkpoints(kafka: Kafka) -> None:
    topic, out = kafka.topic(), kafka.topic()
    partitions, again = CopiedPartitions(out), CopiedPartitions(out)

    async with receiving(partitions, **once(kafka, topic, autocommit={"interval": "1h"})) as running:
        partitions.begin(running)
        await until(lambda: partitions.opened, "the partition")
        for state in (b"first", b"second"):
            partitions.opened[0].state, partitions.opened[0].checkpoint_wanted = state, True
            kafka.produce(topic, [message("a")])
            await until(partial(_is_elsewhere, partitions.opened[0], partitions.opened[0].at), "a checkpoint")
        assert kafka.committed(f"group-{topic}", topic) == {}
        partitions.opened[0].state = b"third"
    async with receiving(again, **once(kafka, topic)) as running:
        again.begin(running)
        await until(lambda: again.opened, "the partition")

    assert again.opened[0].restored == b"third!"


async def test_what_is_kept_aside_is_of_the_transaction_too(kafka: Kafka) -> None:
    topic, out, aside = kafka.topic(), kafka.topic(), kafka.topic()
    kafka.produce(topic, [message("a"), b"\xff poison"])
    partitions = CopiedPartitions(out)
    config = once(kafka, topic, dead_letter={"topic": aside}, autocommit={"interval": "1h"})

    async with receiving(partitions, **config) as running:
        partitions.begin(running)
        await until(lambda: seen(kafka, out, uncommitted=True) == ["a"], "what can be read")
        assert kafka.consume(aside) == []

    assert [record.value for record in kafka.consume(aside)] == [b"\xff poison"]


async def test_a_transaction_that_comes_to_nothing_is_done_again(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic, out, aside = kafka.topic(), kafka.topic(), kafka.topic()
    config: dict[str, Any] = {"max.message.bytes": "1000"}
    small = kafka.topic(**config)
    kafka.produce(topic, [message("a"), b"\xff poison"])
    partitions = CopiedPartitions(out)
    partitions.spoiling = small

    async with receiving(partitions, **once(kafka, topic, dead_letter={"topic": aside})) as running:
        partitions.begin(running)
        await until(lambda: seen(kafka, out) == ["a"], "the second try")

    assert len(partitions.opened) == 2
    assert [record.value for record in kafka.consume(aside)] == [b"\xff poison"]
    assert "joins it again" in caplog.text
    assert small in caplog.text, "why, whichever of its messages is found to have failed first"


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_rebalance_ends_the_transaction_and_nothing_is_copied_twice(kafka: Kafka, strategy: str) -> None:
    topic, out = kafka.topic(partitions=4), kafka.topic()
    written = [f"{number}-{partition}" for number in range(3) for partition in range(4)]

    def produce(number: int) -> None:
        for partition in range(4):
            kafka.produce(topic, [message(f"{number}-{partition}")], partition=partition)

    one, other = CopiedPartitions(out), CopiedPartitions(out)
    config = once(kafka, topic, group_rebalance_strategies=[strategy], autocommit={"interval": "1h"})
    async with receiving(one, **config) as running:
        one.begin(running)
        produce(0)
        await until(lambda: len(seen(kafka, out, uncommitted=True)) == 4, "what came first")
        async with receiving(other, **config) as joining:
            other.begin(joining)
            await until(lambda: (one.alive, other.alive) == (2, 2), "two partitions each")
            assert len(seen(kafka, out)) == 4
            produce(1)
            await until(lambda: len(seen(kafka, out, uncommitted=True)) == 8, "what came to both")
        produce(2)
        await until(lambda: len(seen(kafka, out, uncommitted=True)) == 12, "what came after one had left")

    assert seen(kafka, out) == written
    assert seen(kafka, out, uncommitted=True) == written


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_rebalance_that_comes_while_a_transaction_asks_who_commits_waits_for_no_one(
    kafka: Kafka, strategy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(consumer_thread, "_WAIT_SECONDS", 2.0)  # for so long each transaction asks
    topic, out = kafka.topic(partitions=4), kafka.topic()
    one, other = CopiedPartitions(out), CopiedPartitions(out)
    config = once(kafka, topic, group_rebalance_strategies=[strategy], autocommit={"interval": "10ms"})

    async with receiving(one, **config) as running:
        one.begin(running)
        await until(lambda: one.alive == 4, "all partitions")
        for partition in range(4):
            kafka.produce(topic, [message("a")] * 10, partition=partition)
        await until(lambda: seen(kafka, out, uncommitted=True), "a transaction")
        async with receiving(other, **config) as joining:
            other.begin(joining)
            await until(lambda: (one.alive, other.alive) == (2, 2), "two partitions each")
        await until(lambda: one.alive == 4 and len(seen(kafka, out)) == 40, "all of it")

    assert "leaves the group" not in caplog.text


async def test_a_static_member_fences_its_predecessor_and_copies_what_that_had_not_committed(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic, out = kafka.topic(), kafka.topic()
    kafka.produce(topic, [message("a")])
    former, latter = CopiedPartitions(out), CopiedPartitions(out)
    config = once(kafka, topic, group_instance_id="one")

    async with receiving(former, **{**config, "autocommit": {"interval": "1h"}}) as running:
        former.begin(running)
        await until(lambda: seen(kafka, out, uncommitted=True) == ["a"], "the transaction of the former")
        async with receiving(latter, **config) as again:
            latter.begin(again)
            await until(lambda: seen(kafka, out) == ["a"], "the transaction of the latter")
            await until(lambda: former.opened[0].dropped, "the former to give up")

    assert seen(kafka, out) == ["a"]
    assert "has come as group_instance_id one, each needs one of its own" in caplog.text


async def test_a_checkpoint_that_there_is_no_time_for_at_the_end_does_not_undo_the_transaction(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(membership, "_KEEPING_SECONDS", 0.001)  # for less than a message lingers
    topic, out = kafka.topic(), kafka.topic()
    kafka.produce(topic, [message("a")])
    partitions = CopiedPartitions(out)

    async with receiving(partitions, **once(kafka, topic, autocommit={"interval": "1h"})) as running:
        partitions.begin(running)
        await until(lambda: partitions.names == ["a"], "the record")

    assert "no checkpoint could be written within" in caplog.text
    assert seen(kafka, out) == ["a"]
    assert kafka.committed(f"group-{topic}", topic)[0][0] == 1


async def test_no_transaction_delivers_without_the_checkpoint_that_is_due_by_then(kafka: Kafka) -> None:
    topic, out = kafka.topic(), kafka.topic()
    group = f"group-{topic}"
    kafka.produce(topic, [message("a")])
    partitions = CopiedPartitions(out)
    partitions.want_checkpoints_when_delivered = True

    async with receiving(partitions, **once(kafka, topic)) as running:
        partitions.begin(running)
        await until(lambda: kafka.committed(group, topic).get(0, (0, ""))[0] == 1, "the transaction")
        committed = Commit(*kafka.committed(group, topic)[0])
        assert partitions.checkpoint_of(committed) is not None

    assert seen(kafka, out) == ["a"]


async def test_records_of_a_topic_made_anew_are_copied_once(kafka: Kafka) -> None:
    topic, out = kafka.topic(), kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    partitions = CopiedPartitions(out)
    async with receiving(partitions, **once(kafka, topic)) as running:
        partitions.begin(running)
        await until(lambda: seen(kafka, out) == ["a", "b"], "the old records")
        kafka.delete_topic(topic)
        kafka.topic(topic)
        kafka.produce(topic, [message(name) for name in "cdefg"])
        await until(lambda: "c" in seen(kafka, out), "the new records")

    assert seen(kafka, out) == list("abcdefg")


async def test_what_is_given_up_while_a_transaction_ends_is_not_seen_without_how_far_it_was_read(kafka: Kafka) -> None:
    """As when a member leaves and the brokers take longer to answer than it waits."""
    out = kafka.topic()
    transactions = Transactions({"bootstrap.servers": kafka.bootstrap()}, f"id-{out}", timeout=60.0)
    owned: dict[tuple[str, int], Any] = {}

    class GivenUp(RecordedPartition):
        async def delivered(self) -> None:
            owned.clear()

    async def group() -> object:
        raise AssertionError("nothing is to be committed")

    async def changed() -> list[str]:
        return []

    cycle = TransactionCycle(owned, cast("KeptAside", None), transactions, group, changed, interval=1)
    owned["in", 0] = SimpleNamespace(partition=GivenUp(("in", 0), None, None))
    await transactions.start()
    try:
        async with cycle.working():
            await transactions.produce(out, b"a")
        assert await cycle.last_commits([("in", 0)]) == {}
        assert cycle.failed
        await cycle.settle()
    finally:
        await transactions.close()

    assert seen(kafka, out) == []
    assert seen(kafka, out, uncommitted=True) == ["a"]
