"""Whatever was under way when an owner is gone: everything leaves, the same, and again only what was not committed."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from podtrail.component import Commit, Partition, PartitionRecord
from podtrail.config.types import DeliverySettings
from podtrail.partitioned.note import OwnersNote
from podtrail.pipeline.settings import Settings
from tests.partitioned.consumers import Consumer, after, records
from tests.partitioned.test_every_cut import gaps, uninterrupted
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import CONFIGURATIONS
from tests.sizes import large

GENERATED = records(arrivals(90, seed=9))
CONFIGURATION = CONFIGURATIONS["decisions are remembered"]


class Broker:
    """What outlives a consumer: what is committed, checkpoints, and how much was delivered when that was written."""

    def __init__(self) -> None:
        self.committed: Commit | None = None
        self.checkpoints: dict[str, bytes] = {}
        self.delivered = 0

    def keep(self, partition: Partition) -> None:
        """Write a checkpoint."""
        at = f"{len(self.checkpoints)}"
        self.checkpoints[at] = b"".join(partition.checkpoint() or pytest.fail("it can be taken"))
        partition.checkpointed(at)

    def commit(self, commit: Commit, delivered: int) -> None:
        """Commit; while an owner repeats what another has done, it says what that one said."""
        assert len(commit.metadata) < 4096
        if not self.committed or _left(commit) > _left(self.committed):
            self.delivered = delivered
        self.committed = commit


async def owned(settings: Settings, broker: Broker, rng: random.Random, source: Sequence[PartitionRecord]) -> list[Any]:
    """Own a partition until a crash; return what was delivered, `broker.delivered` tells how much of it for good."""
    marks = gaps(source, "marks")
    async with Consumer(settings, DeliverySettings()) as consumer:
        (exporter,) = consumer.exporters.values()
        exporter.waits = True
        place = consumer.partitions.checkpoint_of(broker.committed) if broker.committed else None
        partition = await consumer.open(committed=broker.committed, checkpoint=broker.checkpoints.get(place or ""))
        ahead = after(broker.committed, partition, source)
        while True:
            for number in sorted(exporter.under_way):
                if rng.random() < 0.4:
                    exporter.let(number)
            for _ in range(8):  # until the queue knows of it as well
                await asyncio.sleep(0)
            match rng.randrange(10):
                case 0 if partition.position:
                    broker.commit(partition.commit(), len(exporter.got))
                case 1 if partition.position:
                    broker.keep(partition)
                case 2 if rng.random() < 0.3:
                    return list(exporter.got)
                case _ if ahead:
                    record = ahead.pop(0)
                    now, due = marks.get(record.offset), partition.due()
                    is_new = not broker.committed or _left(broker.committed)[0] <= record.offset
                    if is_new and now is not None and due is not None and due <= now:
                        broker.commit(partition.mark(now), len(exporter.got))
                        if rng.random() < 0.2:
                            return list(exporter.got)
                        await partition.pass_time(now)
                    await partition.take([record])
                case _:
                    exporter.go_on()
                    await partition.pass_time(marks[len(source)])
                    await partition.delivered()
                    assert not any(balance.missing for balance in consumer.balances())
                    broker.delivered = -1
                    return list(exporter.got)


def _left(commit: Commit) -> tuple[int, int]:
    note = OwnersNote.read(commit)
    assert note is not None
    return note.left


@pytest.mark.parametrize("seed", range(large(6, 200)))
async def test_what_is_delivered_is_what_one_owner_delivers(seed: int) -> None:
    rng, settings = random.Random(seed), CONFIGURATION.settings()
    whole = await uninterrupted(settings, GENERATED, gaps(GENERATED, "marks"), 1000)
    broker, once, twice = Broker(), Counter[str](), Counter[str]()
    while broker.delivered >= 0:
        broker.delivered = 0
        got = await owned(settings, broker, rng, GENERATED)
        until = broker.delivered if broker.delivered >= 0 else len(got)
        once.update(map(repr, got[:until]))
        twice.update(map(repr, got[until:]))
    expected = Counter(map(repr, whole.out))
    assert once + twice >= expected
    assert set(once) | set(twice) == set(expected), "nothing is decided otherwise"
    assert once <= expected, "what is committed as delivered is not delivered again"
