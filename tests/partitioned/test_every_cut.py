"""Whoever takes a partition up goes on as if nobody had left it, wherever that was."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from podtrail.component import Commit, Partition, PartitionRecord
from podtrail.pipeline.settings import Settings
from podtrail.recording.merging import merged
from tests.partitioned.consumers import Consumer, after, records
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import CONFIGURATIONS, ROOT
from tests.reliability.simulation.quiet import without_logs
from tests.sizes import large

SECOND = 1_000_000_000
GENERATED = records(arrivals(120, seed=5))
AT_EVERY_RECORD = ("linked traces", "nothing is held", "senders wait while all is undecided")
Marks = Mapping[int, int]
"""How far time passes without a record, by the offset before which it does."""


@pytest.fixture(scope="module")
def node() -> list[PartitionRecord]:
    """Spans of all components of a node."""
    path = ROOT / "tests/data/recordings/node/podtrail/spans.otlp.zst"
    return records([(each.arrival, each.intake) for each in merged([path], lambda damage: pytest.fail(str(damage)))])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with without_logs():
        yield


def gaps(source: Sequence[PartitionRecord], seed: str) -> Marks:
    """Some moments at which a partition has been idle."""
    rng = random.Random(seed)
    chosen = rng.sample(range(1, len(source)), 12)
    return {at: source[at - 1].time + rng.choice([1, 4, 15, 60]) * SECOND for at in chosen} | {
        len(source): source[-1].time + 10_000 * SECOND
    }


async def idle(partition: Partition, until: int) -> None:
    due = partition.due()
    if due is not None and due <= until:
        await partition.pass_time(until)


async def read(partition: Partition, source: Sequence[PartitionRecord], marks: Marks) -> None:
    """Read a partition to its end, which is wherever it is idle."""
    for record in source:
        if record.offset in marks:
            await idle(partition, marks[record.offset])
        await partition.take([record])
    if source and (end := source[-1].offset + 1) in marks:
        await idle(partition, marks[end])


@dataclass
class Left:
    """What an owner has left behind before it took the record at an offset."""

    commit: Commit
    checkpoint: bytes | None
    delivered: int


@dataclass
class Whole:
    """A partition that one owner has read."""

    out: list[Any]
    left: list[Left] = field(default_factory=list)


def checkpointed(partition: Partition) -> None:
    """Write a checkpoint if one is due."""
    if partition.checkpoint_due():
        assert partition.checkpoint() is not None
        partition.checkpointed("at the end")
    assert not partition.checkpoint_due()


async def uninterrupted(settings: Settings, source: Sequence[PartitionRecord], marks: Marks, every: int) -> Whole:
    """Read a partition, and note what would be left behind before each record."""
    async with Consumer(settings) as consumer:
        (exporter,) = consumer.exporters.values()
        partition, whole = await consumer.open(), Whole(exporter.got)
        checkpoint = None
        for record in source:
            if partition.position is not None:
                await partition.delivered()
                if not record.offset % every:
                    checkpoint = b"".join(partition.checkpoint() or pytest.fail("it can be taken"))
                    partition.checkpointed(f"before {record.offset}")
                whole.left.append(Left(partition.commit(), checkpoint, len(exporter.got)))
                assert len(whole.left[-1].commit.metadata) < 4096
            await read(partition, [record], marks)
        await partition.delivered()
        assert not any(balance.missing for balance in consumer.balances())
        assert partition.undecided == 0
        checkpointed(partition)
        assert partition.commit().offset == len(source)
    return whole


async def goes_on(
    settings: Settings, source: Sequence[PartitionRecord], marks: Marks, left: Left, whole: Whole
) -> None:
    """Check that the next owner lets out what is not delivered, all of it, once."""
    async with Consumer(settings) as consumer:
        (exporter,) = consumer.exporters.values()
        partition = await consumer.open(committed=left.commit, checkpoint=left.checkpoint)
        assert partition.commit() == left.commit
        await read(partition, after(left.commit, partition, source), marks)
        await partition.delivered()
        assert exporter.got == whole.out[left.delivered :]
        assert not any(balance.missing for balance in consumer.balances())
        checkpointed(partition)
        assert partition.commit().offset == len(source)


async def cut(name: str, source: Sequence[PartitionRecord], at: Sequence[int], every: int) -> None:
    settings, marks = CONFIGURATIONS[name].settings(), gaps(source, name)
    whole = await uninterrupted(settings, source, marks, every)
    for offset in at:
        await goes_on(settings, source, marks, whole.left[offset - 1], whole)


@pytest.mark.parametrize("name", CONFIGURATIONS)
async def test_the_next_owner_lets_out_the_rest_where_no_checkpoint_was_ever_written(name: str) -> None:
    await cut(name, GENERATED, random.Random(name).sample(range(1, len(GENERATED) - 1), 1), every=10**9)


@pytest.mark.parametrize("name", CONFIGURATIONS)
async def test_the_next_owner_lets_out_the_rest_with_every_processor(name: str) -> None:
    await cut(name, GENERATED, random.Random(name).sample(range(8, len(GENERATED) - 1), large(1, 10)), every=7)


@pytest.mark.parametrize("name", AT_EVERY_RECORD)
async def test_the_next_owner_lets_out_the_rest_after_every_record(name: str) -> None:
    await cut(name, GENERATED[:60], range(1, 59, large(3, 1)), every=5)


@pytest.mark.parametrize("name", ["links", "merged lives", "linked traces of whole Pods"])
async def test_the_next_owner_lets_out_the_rest_of_what_a_node_sent(name: str, node: list[PartitionRecord]) -> None:
    await cut(name, node[:100], random.Random(name).sample(range(11, 90), 1), every=10)
