"""What each partition should have come to, by one consumer that nothing ever happened to, and what is wrong."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from podtrail.component import Ledger
from podtrail.otlp import Batch, split
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.host import Host
from podtrail.pipeline.partitioning import PartitionChain
from podtrail.pipeline.settings import Settings
from tests.partitioned.consumers import TOPIC
from tests.reliability.simulation.partitions.fleet import FleetOutcome
from tests.reliability.simulation.partitions.fleet_setup import FleetSetup
from tests.reliability.simulation.partitions.partition_log import SECOND, Delivery, PartitionLog, wall
from tests.reliability.simulation.partitions.simulated_consumer import SPAN_ID, key_of

_UNDER_WAY = 0.3
"""Seconds before a commit in which what arrives is not known to be delivered yet: a checkpoint that it names was taken
up to 0.2 s before, and tells no two batches apart that have left at the same time."""
_AFTER_A_RELOAD = 15 * SECOND
"""What begins later than that after a reload is decided by the new policies."""


def expected(log: PartitionLog, settings: Settings) -> Sequence[Batch]:
    """What leaves the processors of a partition that are told its time, and nothing else."""
    (pipeline,) = settings.pipelines
    made = PartitionChain(pipeline, settings, Host(), Ledger(), TOPIC, log.number)
    chain, reached = made.chain, 0
    marks = sorted(log.marks.items())
    for record in log.records:
        while marks and marks[0][0] <= record.offset:
            reached = max(reached, marks.pop(0)[1])
            _pass_until(chain, reached)
        reached = max(reached + 1, record.time)
        _pass_until(chain, reached)
        while chain.blocked:
            reached = max(reached, chain.deadline() or 0)
            _pass_until(chain, reached)
        if record.batch is not None:
            chain.add(replace(record.batch, arrived=reached), reached)
    for _, until in marks:
        _pass_until(chain, max(until, reached))
    made.close()
    return [batch for batch in chain.outbox if batch.groups or batch.verdicts]


def _pass_until(chain: ProcessorChain, now: int) -> None:
    while chain.advance(now, SLICE_SPANS):
        pass


def wrong_with(setup: FleetSetup, outcome: FleetOutcome) -> Sequence[str]:
    """Say what is wrong with an outcome."""
    settings = setup.settings()
    wrong = list(outcome.uneven)
    if outcome.undecided:
        wrong.append(f"{outcome.undecided} spans are undecided at the end")
    for log in outcome.logs:
        said = [*log.wrong, *_wrong_batches(log, settings, setup, outcome)]
        if setup.kind != "forgetful":
            said += _repeated(log)
        wrong += [f"partition {log.number}: {each}" for each in said]
    return wrong


def _wrong_batches(log: PartitionLog, settings: Settings, setup: FleetSetup, outcome: FleetOutcome) -> Iterator[str]:
    should = expected(log, settings)
    if setup.kind == "exact":
        keys, did = {key_of(batch) for batch in should}, {delivery.key for delivery in log.deliveries}
        if keys - did:
            yield f"{len(keys - did)} of {len(keys)} batches were not delivered"
        if did - keys:
            yield f"{len(did - keys)} batches that nobody should have delivered"
        return
    spans = {span for batch in should for span in _spans(batch)}
    if outcome.reloaded is not None:
        spans.update(_begun_after(log, wall(outcome.reloaded) + _AFTER_A_RELOAD))
    missing = spans - {span for delivery in log.deliveries for span in delivery.spans}
    if missing:
        yield f"{len(missing)} of {len(spans)} spans were not delivered"


def _begun_after(log: PartitionLog, time: int) -> Iterator[bytes]:
    """Yield the spans of traces that begin after a time."""
    begun: dict[bytes, int] = {}
    for record in log.records:
        for group in record.batch.groups if record.batch is not None else ():
            if begun.setdefault(group.trace_id, record.time) > time:
                yield from (span[SPAN_ID] for span in split(group.spans))


def _spans(batch: Batch | None) -> Iterator[bytes]:
    for group in batch.groups if batch is not None else ():
        for span in split(group.spans):
            yield span[SPAN_ID]


def _repeated(log: PartitionLog) -> Iterator[str]:
    """What was delivered again although it was committed as delivered."""
    before: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in log.deliveries:
        for earlier in before[delivery.key]:
            if (at := _known(log, earlier, delivery.epoch)) is not None:
                yield f"delivered at {earlier.time:.3f}, committed at {at:.3f}, and again at {delivery.time:.3f}"
        before[delivery.key].append(delivery)


def _known(log: PartitionLog, delivery: Delivery, epoch: int) -> float | None:
    """When an owner, or one before it, was told that something is delivered."""
    while epoch > delivery.epoch:
        begun = log.begun[epoch]
        epoch = begun.by
        if epoch == delivery.epoch and delivery.time < begun.at - _UNDER_WAY:
            return begun.at
    return None


def repeats(outcome: FleetOutcome) -> int:
    """How many batches were delivered more than once."""
    return sum(len(log.deliveries) - len({delivery.key for delivery in log.deliveries}) for log in outcome.logs)
