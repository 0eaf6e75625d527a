"""What all partitions of a receiver share: its pipelines as they are configured now, and who gets what left others."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from podtrail.component import Refused
from podtrail.durable.generation import Generation
from podtrail.durable.owed import Way
from podtrail.partitioned.instruments import PartitionInstruments
from podtrail.partitioned.processing import PartitionPipeline
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.partitioning import FedPipelines
from podtrail.pipeline.settings import PipelineSettings, Settings

_SILENCE: Final = 60_000_000_000
"""Nanoseconds for which nothing more is said of records that are refused."""


class SharedByPartitions:
    """The surroundings of a receiver's partitions."""

    def __init__(self, receiver: str, pipelines: FedPipelines, clock: PipelineClock) -> None:
        """Have the partitions of `receiver` feed these pipelines; `clock`: tells when memory is looked at again."""
        context = pipelines.host.context(receiver)
        self.clock = clock
        self.instruments = PartitionInstruments(receiver, context.metrics)
        self.log: logging.LoggerAdapter[logging.Logger] = context.log
        self.open = asyncio.Event()
        """Cleared while nothing may be let in."""
        self.open.set()
        self._silent = 0
        """Until when, in pipeline time, nothing is said of records that are refused."""
        self._retired: dict[str, Driver] = {}
        self._elsewhere: dict[Way, Driver] = {}
        self.lead_to(pipelines)

    def lead_to(self, pipelines: FedPipelines) -> None:
        """Feed these pipelines from now on."""
        self.pipelines = pipelines
        ids = [driver.id for driver in pipelines.drivers]
        self.fed: Sequence[PipelineSettings] = [each for each in pipelines.settings.pipelines if each.id in ids]
        self.generation = Generation.of(pipelines.settings, self.fed)
        written = json.dumps(asdict(self.generation), sort_keys=True).encode()
        self.configured = hashlib.sha256(written).hexdigest()[:8]
        """Tells the configuration from others."""
        self._drivers: Mapping[str, Driver] = {driver.id: driver for driver in pipelines.drivers}
        self._retired.clear()
        self._elsewhere.clear()

    def driver(self, pipeline: PipelineSettings) -> Driver:
        """Return the driver of a pipeline; of one that is fed no more, one to those of its exporters that are left."""
        found = self._drivers.get(pipeline.id) or self._retired.get(pipeline.id)
        if found is None:
            found = self._retired[pipeline.id] = self.pipelines.retire(pipeline)
        return found

    def is_fed(self, pipeline: str) -> bool:
        """Say whether the receiver feeds a pipeline."""
        return pipeline in self._drivers

    def elsewhere(self, way: Way) -> Driver:
        """Return a driver that leads to an exporter which a pipeline no longer has, if anybody still has it."""
        found = self._elsewhere.get(way)
        if found is None:
            pipeline, exporter = way
            found = self._elsewhere[way] = self.pipelines.retire(PipelineSettings(pipeline, (), (), (exporter,)))
        return found

    def give_up(self, spans: int) -> None:
        """Count spans that were owed to exporters which a reload has removed, and say so."""
        if spans:
            self.instruments.abandoned(spans)
            self.log.error("%d spans were owed to exporters that are no longer configured, and are given up", spans)

    def tell_refused(self, topic: str, partition: int, offset: int, refused: Refused) -> None:
        """Say that a partition waits before a record, unless it was said of one within the last minute."""
        now = self.clock.now()
        if now >= self._silent:
            self._silent = now + _SILENCE
            self.log.warning("%s/%d waits before offset %d: %s", topic, partition, offset, refused)

    def make(
        self, pipelines: Sequence[PipelineSettings], settings: Settings, topic: str, partition: int
    ) -> Sequence[PartitionPipeline]:
        """Make the processors of some pipelines for a partition.

        Raises:
            StartError: one can't be made.
            CheckpointError: one is made up in a way that can't be kept.
        """
        host = self.pipelines.host
        made: list[PartitionPipeline] = []
        try:
            for pipeline in pipelines:
                driver = self.driver(pipeline)
                made.append(PartitionPipeline(pipeline, settings, host, driver, topic, partition))
        except BaseException:
            for each in made:
                each.close()
            raise
        return made

    def make_fed(self, topic: str, partition: int) -> Sequence[PartitionPipeline]:
        """Make the processors of all pipelines that are fed now, for a partition.

        Raises:
            StartError: one can't be made.
            CheckpointError: one is made up in a way that can't be kept.
        """
        return self.make(self.fed, self.pipelines.settings, topic, partition)
