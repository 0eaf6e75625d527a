"""Transactions on a real broker: what they produce is there once or not at all, whatever becomes of the producer."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from podtrail.transport.kafka.failures import ProducerFenced, TransactionAborted, TransactionsUnavailable
from podtrail.transport.kafka.transactions import Transactions
from tests.free_ports import free_ports
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def transacting(kafka: Kafka, name: str = "", seconds: float = 60.0) -> AsyncIterator[Transactions]:
    transactions = Transactions({"bootstrap.servers": kafka.bootstrap()}, name or uuid.uuid4().hex, timeout=seconds)
    await begun(transactions)
    try:
        yield transactions
    finally:
        await transactions.close()


async def begun(transactions: Transactions) -> None:
    """Start them, again where brokers take longer to answer than a transaction may."""
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await transactions.start()
            except TransactionsUnavailable:
                continue
            return


def values(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.consume(topic)]


async def commit_alone(transactions: Transactions) -> None:
    await transactions.commit([], None)


async def test_what_is_committed_is_seen_with_the_offsets_and_their_metadata(kafka: Kafka) -> None:
    source, out = kafka.topic(), kafka.topic()
    kafka.produce(source, [b"in"])
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap(), "group.id": out, "enable.auto.commit": False})
    consumer.assign([TopicPartition(source, 0, 0)])
    try:
        async with transacting(kafka) as transactions:
            await transactions.begin()
            place = transactions.produce(out, b"decided", b"key")
            read = [TopicPartition(source, 0, 1, metadata="as far as here")]
            await transactions.commit(read, consumer.consumer_group_metadata())
            assert await place == (0, 0)
    finally:
        consumer.close()

    assert values(kafka, out) == [b"decided"]
    assert kafka.committed(out, source) == {0: (1, "as far as here")}


async def test_what_is_aborted_is_seen_by_nobody_who_reads_what_is_committed(kafka: Kafka) -> None:
    out = kafka.topic()
    async with transacting(kafka) as transactions:
        await transactions.begin()
        await transactions.produce(out, b"given up")
        lingering = [transactions.produce(out, b"given up, too") for _ in range(100)]
        await transactions.abort()
        ends = await asyncio.gather(*lingering, return_exceptions=True)
        assert all(isinstance(end, TransactionAborted | tuple) for end in ends)

        with pytest.raises(TransactionAborted, match="no transaction"):
            transactions.produce(out, b"between two")
        await transactions.begin()
        await transactions.produce(out, b"read again")
        await commit_alone(transactions)

    assert values(kafka, out) == [b"read again"]
    assert b"given up" in [record.value for record in kafka.consume(out, uncommitted=True)]


async def test_a_message_that_fails_takes_the_transaction_with_it(kafka: Kafka) -> None:
    out, small = kafka.topic(), kafka.topic(max_message_bytes="1000")
    async with transacting(kafka) as transactions:
        await transactions.begin()
        transactions.produce(out, b"with it")
        large = transactions.produce(small, b"x" * 2000)
        with pytest.raises(TransactionAborted):
            await commit_alone(transactions)
        await asyncio.gather(large, return_exceptions=True)
        await transactions.abort()
        await transactions.begin()
        transactions.produce(out, b"without it")
        await commit_alone(transactions)

    assert values(kafka, out) == [b"without it"]


async def test_who_comes_later_under_the_same_id_fences_who_was_there(kafka: Kafka) -> None:
    out, name = kafka.topic(), uuid.uuid4().hex
    async with transacting(kafka, name) as former:
        await former.begin()
        await former.produce(out, b"of the former")
        async with transacting(kafka, name) as latter:
            await latter.begin()
            await latter.produce(out, b"of the latter")
            with pytest.raises(ProducerFenced):
                await commit_alone(former)
            await commit_alone(latter)
        await former.start()
        await former.begin()
        await former.produce(out, b"of the former again")
        await commit_alone(former)

    assert values(kafka, out) == [b"of the latter", b"of the former again"]


async def test_a_transaction_that_takes_too_long_is_given_up_by_the_brokers(kafka: Kafka) -> None:
    """They look every ten seconds."""
    out = kafka.topic()
    async with transacting(kafka, seconds=3.0) as transactions:
        await transactions.begin()
        await transactions.produce(out, b"too late")

        await asyncio.to_thread(kafka.wait_for, lambda: kafka.ends(out)[0] == 2, "the mark of the abort")
        with pytest.raises(TransactionAborted):
            await commit_alone(transactions)
        for _ in range(5):
            transactions.allow_longer()
        await begun(transactions)
        await transactions.begin()
        await transactions.produce(out, b"in time")
        await commit_alone(transactions)

    assert values(kafka, out) == [b"in time"]


PRODUCES_FOR_EVER = """
import asyncio, itertools, sys
from podtrail.transport.kafka.transactions import Transactions

async def main(brokers, name, topic, first):
    transactions = Transactions({"bootstrap.servers": brokers}, name)
    await transactions.start()
    for at in itertools.count(int(first)):
        await transactions.begin()
        for part in range(20):
            transactions.produce(topic, b"%d/%d" % (at, part))
        await transactions.commit([], None)
        print(at, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_of_producers_that_are_killed_each_transaction_is_whole_or_not_there(kafka: Kafka) -> None:
    out, name, told = kafka.topic(), uuid.uuid4().hex, -1
    for _ in range(3):
        command = [sys.executable, "-c", PRODUCES_FOR_EVER, kafka.bootstrap(), name, out, str(told + 1)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(5):
            told = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate()
        told = int(([str(told), *rest.split()])[-1])
    asyncio.run(_end_what_is_open(kafka, name))

    seen = [record.value or b"" for record in kafka.consume(out)]
    transactions = [seen[at : at + 20] for at in range(0, len(seen), 20)]
    # One that was committed when the kill came may not have been told of: the next producer does its number again.
    numbers = [int(transaction[0].split(b"/")[0]) for transaction in transactions]
    assert [[b"%d/%d" % (number, part) for part in range(20)] for number in numbers] == transactions
    assert numbers == sorted(numbers)
    assert set(range(told + 1)) <= set(numbers)
    assert len(numbers) <= told + 1 + 3


async def _end_what_is_open(kafka: Kafka, name: str) -> None:
    async with transacting(kafka, name):
        pass


async def test_brokers_that_are_not_there_are_said_to_be(tmp_path: object) -> None:
    (port,) = free_ports(1)
    transactions = Transactions({"bootstrap.servers": f"127.0.0.1:{port}"}, "alone", timeout=1.0)
    with pytest.raises(TransactionsUnavailable, match=rf"127\.0\.0\.1:{port}: .*Connection refused"):
        await transactions.start()
