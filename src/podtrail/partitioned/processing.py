"""The processors of one pipeline in one partition, with what waits at their end."""

from collections import deque
from collections.abc import Sequence

from podtrail.component.passing import PassingProcessor
from podtrail.partitioned.delivered import PartitionStep
from podtrail.pipeline.checkpoint import Checkpointer
from podtrail.pipeline.containment import ContainedProcessor
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.host import Host
from podtrail.pipeline.partitioning import PartitionChain
from podtrail.pipeline.settings import PipelineSettings, Settings


class PartitionPipeline:
    """One pipeline in one partition."""

    def __init__(
        self, pipeline: PipelineSettings, settings: Settings, host: Host, driver: Driver, topic: str, partition: int
    ) -> None:
        """Make its processors, with nothing in them.

        Args:
            pipeline: says which, and who gets what leaves them.
            settings: have the processors' configurations.
            host: makes them.
            driver: has the exporters' queues and the ledger.
            topic: the partition's.
            partition: its number.

        Raises:
            StartError: a processor can't be made.
            CheckpointError: one is made up in a way that can't be kept.
        """
        self.id = pipeline.id
        self.settings = pipeline
        self.driver = driver
        self.made = PartitionChain(pipeline, settings, host, driver.chain.ledger, topic, partition)
        self.chain = self.made.chain
        self.checkpointer = Checkpointer(self.chain)
        self.steps: deque[PartitionStep] = deque()
        """When each of what waits in the chain's outbox has left."""
        driver.partitions[id(self)] = self.chain

    @property
    def exporters(self) -> Sequence[str]:
        """Who gets what leaves; exporters that joined the pipeline later get only what leaves from then on."""
        return self.settings.exporters

    @property
    def remembers(self) -> bool:
        """Whether what came matters for what becomes of what comes."""
        return not all(
            isinstance(p.inner if isinstance(p, ContainedProcessor) else p, PassingProcessor)
            for p in self.chain.processors
        )

    def left(self, step: PartitionStep) -> None:
        """Note that what is new in the outbox has left at a step."""
        for _ in range(len(self.chain.outbox) - len(self.steps)):
            self.steps.append(step)

    def move_to(self, driver: Driver) -> None:
        """Go on with the queues of another driver of the pipeline, which has its ledger."""
        del self.driver.partitions[id(self)]
        self.driver = driver
        driver.partitions[id(self)] = self.chain

    def close(self) -> None:
        """Be gone; what it holds was never received."""
        self.chain.ledger.received -= self.chain.held()
        self.forget()

    def forget(self) -> None:
        """Be gone; nothing was received yet."""
        self.made.close()
        del self.driver.partitions[id(self)]
