"""One owner of partitions: what it waits for, what is left when a partition goes, and other configurations."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from podtrail.component import Commit, Partition, PartitionRecord
from podtrail.component.metrics import Gauge
from podtrail.config.types import DeliverySettings
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.replay.replayer import read_config
from tests.partitioned.consumers import TOPIC, Consumer, after, records
from tests.partitioned.test_every_cut import uninterrupted
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import ALL, CONFIGURATIONS, FAILED, SOME, sampler

SECOND = 1_000_000_000
GENERATED = records(arrivals(60, seed=3))
FAR = GENERATED[-1].time + 10_000 * SECOND
REMEMBERING = CONFIGURATIONS["decisions are remembered"]


def settings_of(processors: Mapping[str, Any], exporters: tuple[str, ...] = ("debug",)) -> Settings:
    return read_settings(
        read_config(
            {
                "receivers": {"otlp": {"protocols": {"grpc": None}}},
                "processors": processors,
                "exporters": dict.fromkeys(exporters),
                "service": {
                    "pipelines": {
                        "traces": {"receivers": ["otlp"], "processors": [*processors], "exporters": [*exporters]}
                    }
                },
            }
        )
    )


def even(consumer: Consumer) -> None:
    assert {balance.exporter: balance.missing for balance in consumer.balances()} == dict.fromkeys(consumer.queues, 0)


def kept(partition: Partition) -> tuple[Commit, bytes]:
    checkpoint = b"".join(partition.checkpoint() or pytest.fail("it can be taken"))
    partition.checkpointed("here")
    return partition.commit(), checkpoint


def counted(consumer: Consumer, name: str) -> float:
    return consumer.metrics.snapshot()[f"podtrail_partition_{name}_total"]["receiver=kafka"]


async def test_what_was_undecided_when_a_partition_is_dropped_was_never_received() -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        first, second = await consumer.open(0), await consumer.open(1)
        await first.take(GENERATED)
        await second.take(GENERATED)
        (before,) = consumer.balances()
        assert before.in_memory == first.undecided + second.undecided > 0
        even(consumer)
        last = first.commit()
        first.drop()
        even(consumer)
        (then,) = consumer.balances()
        assert then.in_memory == second.undecided
        assert then.received == before.received - (before.in_memory - then.in_memory)
        assert first.commit() == last, "what it held is not committed as done"
        await first.take(GENERATED)
        assert first.undecided == 0


async def test_what_falls_due_is_done_at_tenths_of_a_second_of_the_partitions_time() -> None:
    async with Consumer(settings_of({"tail_sampling": {"decision_wait": "2s", "policies": [SOME]}})) as consumer:
        partition = await consumer.open()
        close = [record._replace(time=SECOND + 1 + offset) for offset, record in enumerate(GENERATED)]
        await partition.take(close)
        held, due = partition.undecided, partition.due()
        assert due == 3 * SECOND + SECOND // 10
        await partition.pass_time(due - 1)
        assert partition.undecided == held > 1
        await partition.pass_time(due)
        assert partition.undecided == 0, "all of them at once"


async def test_a_partition_comes_back_to_the_same_process_with_an_even_ledger() -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:30])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[30:50])
        await partition.delivered()
        committed = partition.commit()
        partition.drop()
        back = await consumer.open(committed=committed, checkpoint=checkpoint)
        even(consumer)
        await back.take(after(committed, back, GENERATED))
        await back.pass_time(FAR)
        await back.delivered()
        even(consumer)
        assert back.undecided == 0
        assert back.repeated == counted(consumer, "repeated_decisions") > 0
        assert counted(consumer, "kept_back_spans") > 0
        assert counted(consumer, "replayed_records") == 20


async def test_it_waits_for_room_and_loses_nothing() -> None:
    delivery = DeliverySettings.model_validate({"sending_queue": {"queue_size": 2, "num_consumers": 1}})
    async with Consumer(settings_of(sampler(ALL)), delivery) as consumer:
        (exporter,) = consumer.exporters.values()
        exporter.waits = True
        partition = await consumer.open()
        taking = asyncio.create_task(partition.take(GENERATED))
        await exporter.came.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not taking.done()
        assert (partition.position or 0) < len(GENERATED)
        even(consumer)
        exporter.go_on()
        await taking
        await partition.pass_time(FAR)
        await partition.delivered()
        even(consumer)
        (balance,) = consumer.balances()
        assert not balance.dropped
        assert balance.delivered == sum(each.batch.span_count for each in GENERATED if each.batch)


async def test_a_take_that_is_cancelled_while_it_waits_is_gone_on_with() -> None:
    settings = settings_of(sampler(FAILED, SOME))
    whole = await uninterrupted(settings, GENERATED, {len(GENERATED): FAR}, 1000)
    delivery = DeliverySettings.model_validate({"sending_queue": {"queue_size": 1, "num_consumers": 1}})
    async with Consumer(settings, delivery) as consumer:
        (exporter,) = consumer.exporters.values()
        exporter.waits = True
        partition = await consumer.open()
        while (partition.position or 0) < len(GENERATED):
            taking = asyncio.create_task(partition.take(after(None, partition, GENERATED)))
            for _ in range(20):
                await asyncio.sleep(0)
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
            for number in list(exporter.under_way):
                exporter.let(number)
        exporter.go_on()
        await partition.pass_time(FAR)
        await partition.delivered()
        assert exporter.got == whole.out


async def test_a_dropped_partition_lets_go_of_who_waits_in_it() -> None:
    delivery = DeliverySettings.model_validate({"sending_queue": {"queue_size": 1, "num_consumers": 1}})
    async with Consumer(settings_of(sampler(ALL)), delivery) as consumer:
        (exporter,) = consumer.exporters.values()
        exporter.waits = True
        partition = await consumer.open()
        taking = asyncio.create_task(partition.take(GENERATED))
        await exporter.came.wait()
        partition.drop()
        exporter.let(1)
        await taking
        even(consumer)


async def test_it_waits_while_the_memory_limiter_refuses() -> None:
    used = [10 << 30]
    limiter = {"memory_limiter": {"check_interval": "1s", "limit_mib": 4000}}
    async with Consumer(settings_of({**limiter, **sampler(ALL)}), memory=lambda: used[0]) as consumer:
        partition = await consumer.open()
        taking = asyncio.create_task(partition.take(GENERATED[:3]))
        for _ in range(20):
            await asyncio.sleep(0)
        assert partition.position is None
        used[0] = 0
        consumer.clock.time += 2 * SECOND
        await taking
        assert partition.position == 3
        even(consumer)


async def test_time_passes_up_to_a_refused_record_which_makes_room_and_decides_nothing_otherwise() -> None:
    spread = [record._replace(time=record.time + record.offset * 100 * SECOND) for record in GENERATED]
    limiter = {"memory_limiter": {"check_interval": "10ms", "limit_mib": 4000}}
    outs = []
    for processors in (sampler(FAILED), {**limiter, **sampler(FAILED)}):
        held: list[Partition] = []
        async with Consumer(settings_of(processors), memory=partial(_used_by, held)) as consumer:
            held.append(await consumer.open())
            for record in spread:
                consumer.clock.time += SECOND  # memory is looked at for each
                await held[0].take([record])
            await held[0].pass_time(spread[-1].time + 100 * SECOND)
            await held[0].delivered()
            outs.append(consumer.exporters["debug"].got)
            even(consumer)
    assert outs[0]
    assert outs[0] == outs[1]


def _used_by(partitions: list[Partition]) -> int:
    return 10 << 30 if any(partition.undecided for partition in partitions) else 0


async def test_a_partition_that_waits_for_memory_says_so_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    asked, used = asyncio.Event(), [10 << 30]

    def memory() -> int:
        asked.set()
        return used[0]

    limiter = {"memory_limiter": {"check_interval": "10ms", "limit_mib": 4000}}
    async with Consumer(settings_of({**limiter, **sampler(ALL)}), memory=memory) as consumer:
        partition = await consumer.open()
        taking = asyncio.create_task(partition.take(GENERATED[:3]))
        said = []
        for seconds in (0, 59, 1, 60):
            consumer.clock.time += seconds * SECOND
            asked.clear()
            await asked.wait()
            said.append(caplog.text.count("spans/0 waits before offset 0: 10240 MiB of memory in use"))
        assert said == [1, 1, 2, 3]
        used[0] = 0
        consumer.clock.time += SECOND
        await taking


async def test_memory_decides_nothing_in_a_partition() -> None:
    relief = {"mode": "auto", "memory_limit_mib": 100, "activate_at_percentage": 50, "deactivate_at_percentage": 40}
    settings = settings_of(sampler(FAILED, stress_relief=relief))
    outs = []
    for memory in ([0], [10 << 30]):
        async with Consumer(settings, memory=partial(memory.__getitem__, 0)) as consumer:
            partition = await consumer.open()
            await partition.take(GENERATED)
            await partition.pass_time(FAR)
            await partition.delivered()
            outs.append(consumer.exporters["debug"].got)
    assert outs[0] == outs[1]


async def test_gauges_of_many_partitions_add_up_and_go_with_them() -> None:
    name = "otelcol_processor_tail_sampling_sampling_traces_on_memory"
    async with Consumer(REMEMBERING.settings()) as consumer:

        def shows() -> Mapping[str, float]:
            return consumer.metrics.snapshot()[name]

        first, second = await consumer.open(0), await consumer.open(1)
        await first.take(GENERATED[:30])
        alone = shows()[""]
        await second.take(GENERATED[:30])
        assert shows()[""] == 2 * alone > 0
        first.drop()
        assert shows()[""] == alone
        second.drop()
        assert shows()[""] == 0
        gauges = [instrument for instrument in consumer.metrics if isinstance(instrument, Gauge)]
        assert not any(gauge.parts for gauge in gauges), "nothing is kept of what is gone"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: None, "there is nothing"),
        (lambda data: data[:-9], "damaged|no state"),
        (lambda data: data.replace(b'"format": 1', b'"format": 2', 1), "its format is 2, not 1"),
        (lambda data: data.replace(b'"partition": 0', b'"partition": 7', 1), "it is one of spans/7"),
        (lambda data: b"\0" * 40, "it is no state of a partition"),
    ],
)
async def test_a_checkpoint_that_cannot_be_used_is_told_counted_and_gone_without(
    damage: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(sampler(ALL))
    async with Consumer(settings) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:30])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[30:50])
        await partition.delivered()
        committed, got = partition.commit(), list(consumer.exporters["debug"].got)
    async with Consumer(settings) as consumer:
        assert consumer.partitions.checkpoint_of(committed) == "here"
        back = await consumer.open(committed=committed, checkpoint=damage(checkpoint))
        assert back.position == committed.offset
        assert counted(consumer, "unreadable_checkpoints") == 1
        (line,) = [record.getMessage() for record in caplog.records if "can't be used" in record.getMessage()]
        assert line.startswith("the checkpoint of spans/0 at here")
        await back.take(after(committed, back, GENERATED))
        await back.pass_time(FAR)
        await back.delivered()
        even(consumer)
        spans = {span for each in (got, consumer.exporters["debug"].got) for _, groups, _ in each for span in groups}
        assert len({group[2] for group in spans}) == len(
            {group.trace_id for record in GENERATED if record.batch for group in record.batch.groups}
        ), "no trace is lost"


@pytest.mark.parametrize("metadata", ["", "offset committed by a Collector", "[1]", '{"other": 1}'])
async def test_what_another_client_has_committed_is_where_reading_begins(metadata: str) -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open(committed=Commit(17, metadata))
        assert partition.position == 17
        assert consumer.partitions.checkpoint_of(Commit(17, metadata)) is None
        assert counted(consumer, "unreadable_checkpoints") == 0


@pytest.mark.parametrize("metadata", ['{"podtrail": 2}', '{"podtrail": 1}', '{"podtrail": 1, "left": ["a", "b"]}'])
async def test_a_commit_of_ours_that_cannot_be_read_is_told_and_counted(metadata: str) -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        assert (await consumer.open(committed=Commit(17, metadata))).position == 17
        assert counted(consumer, "unreadable_checkpoints") == 1


async def test_nothing_is_known_of_a_partition_that_was_never_committed() -> None:
    async with Consumer(REMEMBERING.settings()) as consumer:
        partition = await consumer.open()
        assert (partition.position, partition.due(), partition.oldest) == (None, None, None)
        assert partition.checkpoint() is None
        assert not partition.checkpoint_due()
        await partition.take(GENERATED[9:12])
        assert partition.position == 12


async def test_records_without_spans_move_position_and_time() -> None:
    async with Consumer(settings_of(sampler(ALL))) as consumer:
        partition = await consumer.open()
        await partition.take([GENERATED[0], PartitionRecord(5, GENERATED[0].time + 60 * SECOND, None)])
        await partition.delivered()
        assert partition.undecided == 0
        assert partition.checkpoint_due()
        kept(partition)
        assert partition.position == partition.commit().offset == 6


async def test_another_configuration_takes_over_where_the_owner_before_had_come_to() -> None:
    first, second = settings_of(sampler(FAILED)), settings_of(sampler(ALL))
    async with Consumer(first) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:20])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[20:40])
        await partition.delivered()
        committed, undecided = partition.commit(), partition.undecided
        before = list(consumer.exporters["debug"].got)
    async with Consumer(second) as consumer:
        (exporter,) = consumer.exporters.values()
        back = await consumer.open(committed=committed, checkpoint=checkpoint)
        await back.take(after(committed, back, GENERATED)[:20])
        await back.delivered()
        assert exporter.got == [], "what was done before is done again as it was then, and kept back"
        assert back.undecided == undecided
        await back.take(after(committed, back, GENERATED)[:1])
        assert back.checkpoint_due(), "the next owner shall begin with this configuration"
        await back.take(after(committed, back, GENERATED))
        await back.pass_time(FAR)
        await back.delivered()
        even(consumer)
        assert all("not_sampled" not in decided for _, _, decided in exporter.got), "the policies are the new ones"
        assert before


async def test_an_exporter_that_joins_gets_what_leaves_from_then_on_and_one_that_is_gone_is_counted() -> None:
    one, other = settings_of(sampler(ALL)), settings_of(sampler(ALL), ("debug/new",))
    async with Consumer(one) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:20])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[20:40])
        committed = partition.commit()
    async with Consumer(other) as consumer:
        back = await consumer.open(committed=committed, checkpoint=checkpoint)
        await back.take(after(committed, back, GENERATED)[:20])
        even(consumer)
        assert not consumer.exporters["debug/new"].got
        await back.take(after(committed, back, GENERATED))
        await back.pass_time(FAR)
        await back.delivered()
        even(consumer)
        assert consumer.exporters["debug/new"].got
        assert counted(consumer, "abandoned_spans") > 0


async def test_on_reload_processors_take_over_in_every_partition() -> None:
    async with Consumer(settings_of(sampler(FAILED))) as consumer:
        (exporter,) = consumer.exporters.values()
        partitions = [await consumer.open(number) for number in range(3)]
        for partition in partitions:
            await partition.take(GENERATED[:30])
            await partition.delivered()
        undecided, got = [partition.undecided for partition in partitions], len(exporter.got)
        consumer.reload(settings_of(sampler(ALL)))
        even(consumer)
        assert [partition.undecided for partition in partitions] == undecided
        assert all(partition.checkpoint_due() for partition in partitions)
        for partition in partitions:
            await partition.take(after(None, partition, GENERATED))
            await partition.pass_time(FAR)
            await partition.delivered()
        even(consumer)
        assert all("not_sampled" not in decided for _, _, decided in exporter.got[got:])


async def test_a_reload_comes_while_a_partition_waits_for_room() -> None:
    delivery = DeliverySettings.model_validate({"sending_queue": {"queue_size": 1, "num_consumers": 1}})
    async with Consumer(settings_of(sampler(ALL)), delivery) as consumer:
        (exporter,) = consumer.exporters.values()
        exporter.waits = True
        partition = await consumer.open()
        taking = asyncio.create_task(partition.take(GENERATED))
        await exporter.came.wait()
        consumer.reload(settings_of(sampler(ALL, SOME)))
        even(consumer)
        exporter.go_on()
        await taking
        await partition.pass_time(FAR)
        await partition.delivered()
        even(consumer)
        (balance,) = consumer.balances()
        assert balance.delivered == sum(each.batch.span_count for each in GENERATED if each.batch)


async def test_a_reload_comes_while_what_was_done_before_is_done_again() -> None:
    first = settings_of(sampler(FAILED))
    async with Consumer(first) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:20])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[20:40])
        await partition.delivered()
        committed = partition.commit()
    async with Consumer(first) as consumer:
        (exporter,) = consumer.exporters.values()
        back = await consumer.open(committed=committed, checkpoint=checkpoint)
        await back.take(after(committed, back, GENERATED)[:10])
        consumer.reload(settings_of(sampler(ALL)))
        assert back.commit() == committed
        await back.take(after(committed, back, GENERATED)[:10])
        await back.delivered()
        assert exporter.got == []
        await back.take(after(committed, back, GENERATED))
        await back.pass_time(FAR)
        await back.delivered()
        even(consumer)
        assert exporter.got
        assert all("not_sampled" not in decided for _, _, decided in exporter.got)


async def test_a_partition_whose_topic_is_no_more_decides_what_it_holds_and_names_what_is_lost() -> None:
    async with Consumer(settings_of(sampler(ALL))) as consumer:
        partition = await consumer.partitions.open(TOPIC, 0, None, None, topic_id="old")
        await partition.take(GENERATED[:20])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[20:50])
        await partition.delivered()
        committed = partition.commit()
    async with Consumer(settings_of(sampler(ALL))) as consumer:
        assert consumer.partitions.topic_id_of(committed) == "old"
        back = await consumer.partitions.open(TOPIC, 0, committed, checkpoint, topic_id="old")
        assert back.undecided
        assert back.finish() == 30
        assert back.undecided == 0
        await back.delivered()
        assert consumer.exporters["debug"].got
        even(consumer)


async def test_a_partition_that_ends_before_what_was_committed_is_read_as_new(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Consumer(settings_of(sampler(ALL))) as consumer:
        partition = await consumer.open()
        await partition.take(GENERATED[:20])
        _, checkpoint = kept(partition)
        await partition.take(GENERATED[20:50])
        await partition.delivered()
        committed = partition.commit()
    async with Consumer(settings_of(sampler(ALL))) as consumer:
        back = await consumer.open(committed=committed, checkpoint=checkpoint)
        await back.take(GENERATED[20:25])
        back.mark(FAR)
        assert "spans/0 ends at 25, although 50 was committed" in caplog.text
        await back.pass_time(FAR)
        await back.delivered()
        assert consumer.exporters["debug"].got
        even(consumer)
