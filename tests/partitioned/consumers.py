"""Consumers of partitions in one process: real processors and queues, and an exporter that remembers what it got."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from podtrail.component import Commit, Ledger, Metrics, Partition, PartitionRecord
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch, Intake
from podtrail.otlp.decisions import decision_line
from podtrail.partitioned.consumer import ReceiverPartitions
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.containment import contained
from podtrail.pipeline.driver import Driver, Outlet
from podtrail.pipeline.host import Host, make_chain
from podtrail.pipeline.ledger import Balance, balance
from podtrail.pipeline.partitioning import FedPipelines
from podtrail.pipeline.sending import SendingQueue
from podtrail.pipeline.settings import PipelineSettings, Settings
from tests.pipeline.told import Told

TOPIC = "spans"


def records(arrivals: Sequence[tuple[int, Intake]]) -> list[PartitionRecord]:
    """Arrivals as records of a partition."""
    return [PartitionRecord(offset, time, Batch(intake.groups, 0)) for offset, (time, intake) in enumerate(arrivals)]


def shown(batch: Batch) -> Any:
    """What there is to be seen of a batch."""
    decided = [decision_line(verdict) for verdict in batch.verdicts]
    return batch.arrived, [tuple(group) for group in batch.groups], repr(decided)


class RememberingExporter:
    """Takes everything, as it left: at once, or each batch when it is let."""

    wants_verdicts = True
    wants_arrivals = True

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.waits = False
        self.under_way: dict[int, asyncio.Future[None]] = {}
        self.came = asyncio.Event()
        """Set when something is under way."""
        self._number = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        return

    async def send(self, batch: Batch) -> int:
        if self.waits:
            self._number += 1
            number, let = self._number, asyncio.get_running_loop().create_future()
            self.under_way[number] = let
            self.came.set()
            try:
                await let
            finally:
                self.under_way.pop(number, None)
        self.got.append(shown(batch))
        return 0

    def let(self, number: int) -> None:
        """Let one that is under way get there."""
        self.under_way.pop(number).set_result(None)

    def go_on(self) -> None:
        """Let everything get there."""
        self.waits = False
        for number in list(self.under_way):
            self.let(number)


@dataclass
class Consumer:
    """One process that reads partitions."""

    settings: Settings
    delivery: DeliverySettings | None = None
    memory: Callable[[], int] = int
    make_exporter: Callable[[], RememberingExporter] = RememberingExporter
    metrics: Metrics = field(default_factory=Metrics)
    exporters: dict[str, RememberingExporter] = field(default_factory=dict)
    queues: dict[str, SendingQueue] = field(default_factory=dict)
    drivers: list[Driver] = field(default_factory=list)
    retired: list[Driver] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = Told()
        self.host = Host(
            metrics=self.metrics,
            seed=0,
            gates=self.settings.gates,
            memory_used=self.memory,
            reclaim_memory=self._reclaim,
        )
        for pipeline in self.settings.pipelines:
            for id in pipeline.exporters:
                self._queue(id)
            self.drivers.append(self._driver(pipeline, self._chain(pipeline)))
        self.partitions = ReceiverPartitions("kafka", self._fed(), self.clock)

    def _reclaim(self, *, collect: bool) -> int:
        return self.memory()

    def _queue(self, id: str) -> None:
        if id not in self.queues:
            exporter = self.exporters[id] = self.make_exporter()
            context = self.host.context(id)
            self.queues[id] = SendingQueue(
                exporter, id, self.delivery, self.metrics, context.log, rng=context.rng, durable=True
            )

    def _chain(self, pipeline: PipelineSettings, ledger: Ledger | None = None) -> ProcessorChain:
        return make_chain(pipeline, self.settings, self.host, ledger or Ledger(), around=contained)

    def _driver(self, pipeline: PipelineSettings, chain: ProcessorChain) -> Driver:
        outlets = [Outlet(self.queues[id], id, of_partitions=True) for id in pipeline.exporters if id in self.queues]
        return Driver(pipeline.id, chain, outlets, (), self.clock)

    def _retire(self, pipeline: PipelineSettings) -> Driver:
        driver = self._driver(pipeline, ProcessorChain((), Ledger()))
        self.retired.append(driver)
        return driver

    def _fed(self) -> FedPipelines:
        return FedPipelines(self.settings, self.drivers, self.host, self._retire)

    async def open(
        self,
        number: int = 0,
        committed: Commit | None = None,
        checkpoint: bytes | None = None,
        *,
        keeps_checkpoints: bool = True,
    ) -> Partition:
        return await self.partitions.open(TOPIC, number, committed, checkpoint, keeps_checkpoints=keeps_checkpoints)

    def reload(self, settings: Settings) -> None:
        """Go on with other settings, as a graph does at SIGHUP."""
        self.partitions.shut()
        before = {driver.id: driver for driver in self.drivers}
        self.settings, self.drivers = settings, []
        for pipeline in settings.pipelines:
            for id in pipeline.exporters:
                self._queue(id)
            old = before.pop(pipeline.id, None)
            driver = self._driver(pipeline, self._chain(pipeline, old.chain.ledger if old else None))
            for outlet in driver.outlets:
                for theirs in old.outlets if old else ():
                    if theirs.exporter == outlet.exporter:
                        outlet.ledger, outlet.missed = theirs.ledger, theirs.missed
            self.drivers.append(driver)
        self.retired += before.values()
        self.partitions.lead_to(self._fed())
        self.partitions.resume()

    def balances(self) -> list[Balance]:
        every = [(driver, outlet) for driver in (*self.drivers, *self.retired) for outlet in driver.outlets]
        return [
            balance(id, [(driver, outlet) for driver, outlet in every if outlet.exporter == id], queue, ())
            for id, queue in self.queues.items()
        ]

    async def __aenter__(self) -> Self:
        for queue in self.queues.values():
            await queue.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for queue in self.queues.values():
            await queue.__aexit__(None, None, None)


def after(committed: Commit | None, partition: Partition, source: Sequence[PartitionRecord]) -> list[PartitionRecord]:
    """The records that are read next."""
    begin = partition.position if partition.position is not None else (committed.offset if committed else 0)
    return [record for record in source if record.offset >= begin]
