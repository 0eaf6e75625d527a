"""Another configuration takes over the processors of a partition."""

from collections.abc import Sequence
from dataclasses import dataclass

from podtrail.durable.generation import Generation
from podtrail.partitioned.delivered import PartitionStep
from podtrail.partitioned.leaving import PartitionLeaving
from podtrail.partitioned.processing import PartitionPipeline
from podtrail.partitioned.shared import SharedByPartitions
from podtrail.pipeline.host import matching
from podtrail.pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class PendingSuccession:
    """Processors as an owner before had them go on until what it has done is done again."""

    settings: Settings
    """Theirs."""
    generation: Generation
    """The same, as it is written."""
    end: PartitionStep
    """How far it came."""


def succeed(
    old: Sequence[PartitionPipeline],
    settings: Settings,
    new: Sequence[PartitionPipeline],
    shared: SharedByPartitions,
    leaving: PartitionLeaving,
    step: PartitionStep,
) -> None:
    """Have new processors take what old ones hold, as on a reload; what nobody takes is decided and leaves.

    Args:
        old: the pipelines before; they are gone afterwards.
        settings: of the old ones.
        new: the pipelines from now on.
        shared: what is configured now.
        leaving: where what leaves goes to.
        step: when this is.
    """
    ours = {pipeline.id: pipeline for pipeline in new}
    for pipeline in old:
        leaving.carry(pipeline, at_any_rate=True)
        successor = ours.get(pipeline.id)
        if successor is not None:
            pairs = matching(
                successor.settings.processors, pipeline.settings.processors, shared.pipelines.settings, settings
            )
            successor.chain.take_over(pipeline.chain, pairs, step.time)
            successor.left(step)
        pipeline.chain.drain(step.time)
        pipeline.left(step)
        leaving.carry(pipeline, at_any_rate=True)
        pipeline.close()
