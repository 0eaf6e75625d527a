"""A consumer as a process: it reads what it was assigned, lets time pass, commits, writes checkpoints, and dies."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b

from podtrail.component import Commit, Partition, Retryable
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch, split
from podtrail.otlp.decisions import decision_line
from podtrail.partitioned.consumer import ReceiverPartitions
from podtrail.pipeline.settings import Settings
from tests.partitioned.consumers import Consumer, RememberingExporter
from tests.reliability.simulation.partitions.fleet_setup import FleetSetup, Luck
from tests.reliability.simulation.partitions.partition_log import (
    IDLE,
    CommitFailed,
    Delivery,
    FencedOff,
    PartitionLog,
    wall,
)

_AT_ONCE = 20
"""Records that are read at once."""
SPAN_ID = slice(20, 28)
"""Where it stands in a span as `encode_span` writes it."""


class BackendExporter(RememberingExporter):
    """Takes its time; what it is told may be there although nobody learns of it any more."""

    def __init__(self, rng: random.Random, luck: Luck, arrived: Callable[[Batch], None]) -> None:
        super().__init__()
        self._rng, self._luck, self._arrived = rng, luck, arrived

    async def send(self, batch: Batch) -> int:
        if self._rng.random() < self._luck.refused:
            raise Retryable("not now")
        slow = self._rng.random() < self._luck.slow
        await asyncio.sleep(self._rng.uniform(0.001, 8.0 if slow else 0.05))
        self._arrived(batch)
        await asyncio.sleep(0.002)
        return 0


class Ownership:
    """A partition while a consumer has it."""

    def __init__(self, log: PartitionLog, partition: Partition) -> None:
        self.log, self.partition, self.epoch = log, partition, log.epoch
        self.task: asyncio.Task[None] | None = None
        self.marking = False
        """Whether it is not known if a mark was committed: nothing else may be."""
        place = place_of(log.committed)
        self.slot = next((slot for slot, written in enumerate(log.slots) if written and written[0] == place), 1)
        """The one of the last checkpoint."""
        self.committed_slot = self.slot
        """The one of the checkpoint that a commit is known to name."""

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has it by now."""
        return self.epoch != self.log.epoch

    @property
    def busy(self) -> bool:
        return self.task is not None and not self.task.done()


def place_of(commit: Commit | None) -> str | None:
    """Where the checkpoint is that a commit names."""
    return None if commit is None else ReceiverPartitions.checkpoint_of(commit)


class SimulatedConsumer:
    """One process."""

    def __init__(self, number: int, setup: FleetSetup, settings: Settings) -> None:
        self.number = number
        self.rng = random.Random(f"{setup.seed}/consumer {number}")
        self.setup, self.luck = setup, setup.luck
        self.owned: dict[int, Ownership] = {}
        self.process = Consumer(
            settings, _delivery(setup), make_exporter=lambda: BackendExporter(self.rng, setup.luck, self._arrived)
        )
        self._logs: dict[int, PartitionLog] = {}
        self._epochs: dict[int, int] = {}
        self._next_epochs: dict[int, int] = {}
        """Of partitions that were assigned while something of an assignment before was still under way."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.process.__aenter__()
        self._task = asyncio.create_task(self._run())

    def _arrived(self, batch: Batch) -> None:
        first = batch.groups[0].trace_id if batch.groups else batch.verdicts[0].trace_id
        number = int.from_bytes(first[:4])
        spans = frozenset(span[SPAN_ID] for group in batch.groups for span in split(group.spans))
        now = asyncio.get_running_loop().time()
        self._logs[number].deliveries.append(Delivery(key_of(batch), spans, now, self._epochs[number]))

    async def assign(self, log: PartitionLog) -> None:
        log.is_owned_by_another()
        checkpoint = log.checkpoint(place_of(log.committed))
        if checkpoint is not None and self.rng.random() < self.luck.damaged_checkpoints:
            checkpoint = self.rng.choice([None, checkpoint[:-20], b"\0" * 99])
        kept = self.setup.keeps_checkpoints
        partition = await self.process.partitions.open(
            "spans", log.number, log.committed, checkpoint, keeps_checkpoints=kept
        )
        self._logs[log.number] = log
        self._next_epochs[log.number] = log.epoch
        self._epochs.setdefault(log.number, log.epoch)
        self.owned[log.number] = Ownership(log, partition)
        self._nothing_under_way()

    def _nothing_under_way(self) -> None:
        """See whether all that is delivered from now on is of the assignments as they are."""
        if self._next_epochs and not any(self.process.metrics.snapshot()["otelcol_exporter_queue_size"].values()):
            self._epochs |= self._next_epochs
            self._next_epochs.clear()

    async def revoke(self, number: int) -> None:
        """Give a partition back as a consumer does that is asked to."""
        owned = self.owned.pop(number)
        await _cancelled(owned.task)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await owned.partition.delivered()
        if owned.partition.position is not None:
            with suppress(CommitFailed, FencedOff):
                self._write_checkpoint(owned)
                self._commit(owned)
        owned.partition.drop()

    def forget(self, number: int) -> None:
        """Learn that a partition is somebody else's."""
        owned = self.owned.pop(number)
        owned.partition.drop()

    async def die(self) -> None:
        """Be killed."""
        await _cancelled(self._task, *(owned.task for owned in self.owned.values()))
        await self.process.__aexit__(None, None, None)
        self.owned.clear()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.setup.poll * self.rng.uniform(0.8, 1.2))
            self._nothing_under_way()
            for owned in list(self.owned.values()):
                if not owned.busy:
                    owned.task = asyncio.create_task(self._turn(owned))
                elif not owned.marking and owned.partition.position is not None:
                    with suppress(CommitFailed, FencedOff):  # a turn will tell that it is lost
                        self._commit(owned)

    async def _turn(self, owned: Ownership) -> None:
        try:
            await self._read(owned)
            if owned.partition.position is None:
                return
            if owned.partition.checkpoint_due() or self.rng.random() < self.luck.checkpoints:
                await self._keep_checkpoint(owned)
            self._commit(owned)
        except CommitFailed:
            return
        except FencedOff:
            if self.owned.get(owned.log.number) is owned:
                self.forget(owned.log.number)

    async def _read(self, owned: Ownership) -> None:
        log, partition = owned.log, owned.partition
        now = wall(asyncio.get_running_loop().time())
        begin, end = partition.position or 0, log.end(now)
        if begin < end:
            await partition.take(log.records[begin : min(end, begin + _AT_ONCE)])
            return
        due, until = partition.due(), now - IDLE
        if due is None or due > until or partition.position is None:
            return
        await self._mark(owned, until)
        if not owned.is_lost:
            log.time_passes()
        await partition.pass_time(until)

    async def _mark(self, owned: Ownership, until: int) -> None:
        position = owned.partition.position
        assert position is not None
        owned.marking = True
        try:
            await self._until_committed(owned, owned.partition.mark(until), (position, until))
        finally:
            owned.marking = False

    async def _keep_checkpoint(self, owned: Ownership) -> None:
        """Write one, and have it committed before there may be another: that would take the room of the one before."""
        pieces = owned.partition.checkpoint() if self.setup.keeps_checkpoints else None
        if pieces is None or self.rng.random() < self.luck.failed_checkpoints:
            return
        await asyncio.sleep(self.rng.uniform(0, 0.2))
        self._write(owned, b"".join(pieces))
        owned.marking = True
        try:
            await self._until_committed(owned, owned.partition.commit())
        finally:
            owned.marking = False

    def _write_checkpoint(self, owned: Ownership) -> None:
        pieces = owned.partition.checkpoint() if self.setup.keeps_checkpoints else None
        if pieces is not None:
            self._write(owned, b"".join(pieces))

    def _write(self, owned: Ownership, checkpoint: bytes) -> None:
        if owned.is_lost:
            raise FencedOff
        at = f"{owned.epoch}/{self.rng.random()}"
        owned.slot = self.other_slot(owned)
        owned.log.slots[owned.slot] = (at, checkpoint)
        owned.partition.checkpointed(at)

    @staticmethod
    def other_slot(owned: Ownership) -> int:
        """Where nothing is that a commit names, or may name."""
        return next(slot for slot in range(3) if slot not in (owned.slot, owned.committed_slot))

    async def _until_committed(self, owned: Ownership, commit: Commit, mark: tuple[int, int] | None = None) -> None:
        while True:
            try:
                self._send(owned, commit, mark)
            except CommitFailed:
                await asyncio.sleep(0.1)
            else:
                return

    def _commit(self, owned: Ownership) -> None:
        self._send(owned, owned.partition.commit())

    def _send(self, owned: Ownership, commit: Commit, mark: tuple[int, int] | None = None) -> None:
        if self.rng.random() < self.luck.lost_commits:
            raise CommitFailed
        owned.log.commit(owned.epoch, commit, asyncio.get_running_loop().time(), mark)
        if self.rng.random() < self.luck.lost_answers:
            raise CommitFailed
        owned.committed_slot = owned.slot


def _delivery(setup: FleetSetup) -> DeliverySettings:
    return DeliverySettings.model_validate(
        {
            "sending_queue": {"queue_size": setup.queue_size, "num_consumers": min(10, setup.queue_size)},
            "retry_on_failure": {"initial_interval": "1s", "max_interval": "2s"},
        }
    )


def key_of(batch: Batch) -> str:
    """Tells a batch from others; a checkpoint may put neighbours together that have the same headers."""
    spans = [
        (group.resource, group.scope, group.trace_id, span) for group in batch.groups for span in split(group.spans)
    ]
    decided = [decision_line(verdict) for verdict in batch.verdicts]
    return blake2b(repr((batch.arrived, spans, decided)).encode(), digest_size=9).hexdigest()


async def _cancelled(*tasks: asyncio.Task[None] | None) -> None:
    """Cancel tasks and wait until they are gone."""
    for task in filter(None, tasks):
        task.cancel()
    for result in await asyncio.gather(*filter(None, tasks), return_exceptions=True):
        if isinstance(result, Exception):
            raise result
