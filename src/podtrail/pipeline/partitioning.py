"""What a receiver with partitions feeds, as the graph sees it, and the processors that each partition gets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from podtrail.component import EnrichingMemories, Ledger, Partitions
from podtrail.component.metrics import MetricsPart
from podtrail.otlp import Batch
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.containment import contained
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.host import Host, make_chain
from podtrail.pipeline.settings import PipelineSettings, Settings

TICK: Final = 100_000_000
"""Nanoseconds of a partition's time: what falls due is done at the next multiple, for many traces at once. Records have
a time each, so that otherwise each trace would be decided alone, as little at a time as nowhere else."""

Retire = Callable[[PipelineSettings], Driver]
"""Makes the driver of a pipeline that is no longer configured: it leads to those of its exporters that are left."""


@dataclass(frozen=True, slots=True)
class FedPipelines:
    """The pipelines that a receiver feeds, and how processors of theirs are made."""

    settings: Settings
    drivers: Sequence[Driver]
    host: Host
    retire: Retire


class PartitionedConsumer(Partitions, Protocol):
    """What a partitioned receiver feeds. On reload it is shut, made to lead to other pipelines, and open again."""

    def shut(self) -> None:
        """Let nothing in any more: whoever comes waits."""

    def lead_to(self, pipelines: FedPipelines) -> None:
        """Have processors of these pipelines take over in every partition, while it is shut."""

    def resume(self) -> None:
        """Let everybody in again."""


class MakePartitions(Protocol):
    """Makes what a partitioned receiver feeds."""

    def __call__(self, receiver: str, pipelines: FedPipelines, clock: PipelineClock) -> PartitionedConsumer:
        """Return it for the receiver of that id."""


class _MemoryAsked:
    """Tells the memory in use while senders are asked to wait for it, 0 otherwise: nothing may be decided by it."""

    def __init__(self, measure: Callable[[], int]) -> None:
        self.admitting = False
        self._measure = measure

    def __call__(self) -> int:
        return self._measure() if self.admitting else 0


class PartitionChain:
    """The processors of one pipeline for one partition: what they do depends on nothing but what they are told."""

    def __init__(
        self, pipeline: PipelineSettings, settings: Settings, host: Host, ledger: Ledger, topic: str, partition: int
    ) -> None:
        """Make them.

        Args:
            pipeline: says which.
            settings: have their configurations.
            host: makes them.
            ledger: the pipeline's.
            topic: the partition's.
            partition: its number. Chance is drawn by both.

        Raises:
            StartError: one can't be made.
        """
        self._metrics: MetricsPart = host.metrics.part()
        self._memory = _MemoryAsked(host.memory_used)
        theirs = replace(
            host,
            metrics=self._metrics,
            memory_used=self._memory,
            # A partition decides the same wherever it is: its memories do not go by that of the process.
            enriching=EnrichingMemories(),
            memory_budget=0,
            seed=f"{topic}/{partition}",
        )
        self.chain = make_chain(pipeline, settings, theirs, ledger, around=contained, tick=TICK)

    def admit(self, batch: Batch, now: int) -> None:
        """Ask whether a batch is taken at a time by the wall clock, Unix nanoseconds.

        Raises:
            Refused: it is not.
            Lost: a processor failed on it.
        """
        self._memory.admitting = True
        try:
            self.chain.admit(batch, now)
        finally:
            self._memory.admitting = False

    def close(self) -> None:
        """Be gone: what its gauges show is shown no more."""
        self._metrics.close()
