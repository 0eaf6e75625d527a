"""While no checkpoint tells what processors remember, nothing is committed that others would decide otherwise."""

import asyncio
from typing import Any

import pytest

from podtrail.component import Commit, Partition, PartitionRecord
from podtrail.pipeline.settings import Settings
from tests.partitioned.consumers import Consumer, after, records
from tests.partitioned.test_every_cut import uninterrupted
from tests.partitioned.test_owning import even, kept, settings_of
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import ALL, CONFIGURATIONS, FAILED, SOME, sampler

SECOND = 1_000_000_000
GENERATED = records(arrivals(80, seed=11))
FAR = GENERATED[-1].time + 10_000 * SECOND
REMEMBERING = CONFIGURATIONS["decisions are remembered"]


async def read_to_the_end(partition: Partition, committed: Commit | None) -> None:
    await partition.take(after(committed, partition, GENERATED))
    await partition.pass_time(FAR)
    await partition.delivered()


async def test_nothing_is_committed_behind_the_first_record_before_a_checkpoint_is_named() -> None:
    empty = [PartitionRecord(offset, GENERATED[0].time, None) for offset in range(7)]
    source = [record._replace(offset=record.offset + 7) for record in GENERATED]
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open()
        await partition.take(empty)
        assert partition.commit().offset == 7, "of what had no spans nothing is remembered"
        assert not partition.checkpoint_due()
        await partition.take(source[:1])
        assert not partition.checkpoint_due(), "what is undecided holds the commit up anyhow"
        await partition.take(source)
        await partition.delivered()
        assert partition.commit().offset == 7
        assert partition.checkpoint_due()
        assert partition.checkpoint() is not None
        assert partition.commit().offset == 7, "it was not written yet"
        partition.checkpointed("here")
        assert partition.commit().offset > 7
        assert not partition.checkpoint_due()


async def test_a_checkpoint_that_was_not_written_is_due_again() -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED)
        await partition.delivered()
        for _ in range(3):
            assert partition.checkpoint_due()
            assert partition.checkpoint() is not None
        consumer.reload(settings_of(sampler(ALL)))
        for _ in range(3):
            assert partition.checkpoint_due()
            assert partition.checkpoint() is not None


async def test_an_owner_that_starts_where_somebody_else_has_committed_stays_there() -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open(committed=Commit(20, ""))
        await partition.take(GENERATED[20:])
        await partition.delivered()
        committed = partition.commit()
        assert committed.offset == 20
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open(committed=committed)
        await partition.take(GENERATED[20:])
        await partition.delivered()
        assert partition.commit() == committed
        assert not consumer.exporters["debug"].got


@pytest.mark.parametrize("settings", [REMEMBERING.settings(), CONFIGURATIONS["nothing is held"].settings()])
async def test_without_checkpoints_commits_follow_what_is_needed(settings: Settings) -> None:
    async with Consumer(settings) as consumer:
        partition = await consumer.open(keeps_checkpoints=False)
        await partition.take(GENERATED)
        await partition.delivered()
        assert partition.commit().offset > 0
        consumer.reload(settings_of(sampler(ALL)))
        assert not partition.checkpoint_due()
        await partition.pass_time(FAR)
        await partition.delivered()
        assert partition.commit().offset == len(GENERATED)


async def test_processors_that_only_pass_on_need_no_checkpoint() -> None:
    async with Consumer(CONFIGURATIONS["nothing is held"].settings()) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED)
        await partition.delivered()
        assert partition.commit().offset == len(GENERATED)
        assert not partition.checkpoint_due()


async def test_where_a_checkpoint_was_not_to_be_read_its_name_is_given_up() -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:40])
        kept(partition)
        await partition.take(GENERATED[40:60])
        await partition.delivered()
        committed = partition.commit()
    outs: list[Any] = []
    for _ in range(2):
        async with Consumer(REMEMBERING.settings()) as consumer:
            partition = await consumer.open(committed=committed)
            assert consumer.partitions.checkpoint_of(partition.commit()) is None, "others begin with as little"
            await partition.take(after(committed, partition, GENERATED)[:25])
            await partition.delivered()
            assert partition.commit().offset == committed.offset
            outs.append(partition.commit())
    assert outs[0] == outs[1]


@pytest.mark.parametrize("at", [1, 13, 37, 60])
async def test_who_takes_over_from_an_owner_that_died_after_a_reload_decides_the_same(at: int) -> None:
    first, second = settings_of(sampler(FAILED, SOME)), settings_of(sampler(ALL, SOME))
    async with Consumer(first) as consumer:
        (exporter,) = consumer.exporters.values()
        partition = await consumer.open()
        await partition.take(GENERATED[:at])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[at : at + 5])
        await partition.delivered()
        before = len(exporter.got)
        could = partition.commit()
        consumer.reload(second)
        await partition.take(GENERATED[at + 5 : at + 10])
        await partition.pass_time(GENERATED[at + 9].time + 5 * SECOND)
        await partition.take(GENERATED[at + 10 : at + 12])
        await partition.delivered()
        committed = partition.commit()
        assert committed.offset == could.offset, "nothing that the new processors decide is committed without them"
        assert partition.checkpoint_due()
        await read_to_the_end(partition, None)
        whole = list(exporter.got[before:])
        kept(partition)
        assert partition.commit().offset == len(GENERATED)
    async with Consumer(second) as consumer:
        (exporter,) = consumer.exporters.values()
        partition = await consumer.open(committed=committed, checkpoint=checkpoint)
        await read_to_the_end(partition, committed)
        assert exporter.got == whole
        even(consumer)


@pytest.mark.parametrize("reloaded", [True, False])
async def test_who_is_configured_otherwise_and_finds_no_checkpoint_keeps_nothing_back(
    *, reloaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    other = settings_of({})
    async with Consumer(settings_of(sampler(FAILED))) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:70])
        if reloaded:
            consumer.reload(other)
        await partition.take(GENERATED[70:])
        await partition.delivered()
        committed = partition.commit()
    async with Consumer(other) as consumer:
        (exporter,) = consumer.exporters.values()
        partition = await consumer.open(committed=committed)
        assert "the last owner of spans/0 had another configuration" in caplog.text
        await read_to_the_end(partition, committed)
        spans = sum(each.batch.span_count for each in GENERATED if each.batch)
        assert sum(group[4] for _, groups, _ in exporter.got for group in groups) == spans, "nothing is lost"
        even(consumer)


async def test_a_checkpoint_that_was_taken_before_a_reload_does_not_stand_for_what_took_over() -> None:
    async with Consumer(settings_of(sampler(FAILED))) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:40])
        assert partition.checkpoint() is not None
        consumer.reload(settings_of(sampler(ALL)))
        partition.checkpointed("of those before")
        offset = partition.commit().offset
        await read_to_the_end(partition, None)
        assert partition.commit().offset == offset
        assert partition.checkpoint_due()
        kept(partition)
        assert partition.commit().offset == len(GENERATED)


async def test_whoever_dies_before_any_checkpoint_changes_nothing() -> None:
    settings = REMEMBERING.settings()
    whole = await uninterrupted(settings, GENERATED, {len(GENERATED): FAR}, 10**9)
    committed, got = None, 0
    for until in (*range(5, len(GENERATED), 9), len(GENERATED)):
        async with Consumer(settings) as consumer:
            (exporter,) = consumer.exporters.values()
            partition = await consumer.open(committed=committed)
            await partition.take(after(committed, partition, GENERATED)[:until])
            if until == len(GENERATED):
                await partition.pass_time(FAR)
            await partition.delivered()
            await asyncio.sleep(0)
            committed = partition.commit()
            assert exporter.got == whole.out[got : got + len(exporter.got)]
            got += len(exporter.got)
    assert got == len(whole.out)
