"""Takes a partition up where its last owner has left it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from podtrail.component import Commit, StartError
from podtrail.config import ConfigError
from podtrail.otlp import MalformedRequest
from podtrail.partitioned.arrivals import ArrivalOffsets
from podtrail.partitioned.leaving import PartitionLeaving
from podtrail.partitioned.note import OwnersNote
from podtrail.partitioned.owned import OwnedPartition
from podtrail.partitioned.processing import PartitionPipeline
from podtrail.partitioned.shared import SharedByPartitions
from podtrail.partitioned.snapshot import PartitionSnapshot
from podtrail.partitioned.state import PartitionState
from podtrail.partitioned.succession import PendingSuccession
from podtrail.pipeline.checkpoint import CheckpointError

_UNREADABLE = (ValueError, CheckpointError, ConfigError, StartError, MalformedRequest)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a checkpoint has."""

    snapshot: PartitionSnapshot
    pipelines: Sequence[PartitionPipeline]
    succession: PendingSuccession | None = field(default=None)


def open_partition(
    topic: str,
    number: int,
    shared: SharedByPartitions,
    committed: Commit | None,
    checkpoint: bytes | None,
    *,
    keeps_checkpoints: bool,
    topic_id: str,
) -> OwnedPartition:
    """Return a partition as its last owner has left it.

    Args:
        topic: its topic.
        number: its number there.
        shared: its surroundings.
        committed: what is committed for it.
        checkpoint: what was written where that says; None when nothing can be read there.
        keeps_checkpoints: whether any are written from now on.
        topic_id: tells the topic from others of the same name; "": not known.

    Raises:
        StartError: a processor can't be made.
        CheckpointError: one is made up in a way that can't be kept.
    """
    before = _read(topic, number, shared, committed)
    found = None
    if before is not None and before.checkpoint is not None:
        found = _find(topic, number, shared, before, checkpoint)
    if before is None or found is None:
        before = _if_configured_alike(topic, number, shared, before)
        leaving = PartitionLeaving(shared, before)
        state = PartitionState(
            *(topic, number, shared, shared.make_fed(topic, number), leaving, shared.configured),
            before=before,
            topic_id=topic_id,
        )
        if committed is not None:
            state.position = committed.offset
        if committed is not None and before is not None:
            state.reached = state.told = before.begins
            state.ahead.extend(mark for mark in before.marks if mark.position > committed.offset)
        return OwnedPartition(state, committed, None, keeps_checkpoints=keeps_checkpoints)
    leaving = PartitionLeaving(shared, before)
    snapshot, pipelines = found.snapshot, found.pipelines
    for pipeline in pipelines:
        pipeline.steps.extend(snapshot.leaving.get(pipeline.id, ()))
        pipeline.chain.ledger.received += pipeline.chain.held()
    owed = [(way, step, batch) for (way, batch), step in zip(snapshot.states.owed, snapshot.owed, strict=True)]
    leaving.owe_again(pipelines, owed)
    state = PartitionState(
        topic,
        number,
        shared,
        pipelines,
        leaving,
        shared.configured,
        position=snapshot.step.position,
        reached=snapshot.step.time,
        told=max(snapshot.states.reached.values(), default=snapshot.step.time),
        arrivals=ArrivalOffsets(snapshot.arrivals),
        before=before,
        ahead=deque(mark for mark in before.marks if mark > snapshot.step),
        succession=found.succession,
        topic_id=topic_id,
    )
    return OwnedPartition(state, committed, before.checkpoint, keeps_checkpoints=keeps_checkpoints)


def _read(topic: str, number: int, shared: SharedByPartitions, committed: Commit | None) -> OwnersNote | None:
    if committed is None:
        return None
    try:
        return OwnersNote.read(committed)
    except ValueError as error:
        shared.instruments.unreadable()
        shared.log.warning(
            "what is committed for %s/%d can't be used, it is read from offset %d on with nothing remembered: %s",
            *(topic, number, committed.offset, error),
        )
        return None


def _if_configured_alike(
    topic: str, number: int, shared: SharedByPartitions, before: OwnersNote | None
) -> OwnersNote | None:
    """Return what the last owner has left to be known, if nobody decides otherwise by now.

    What is undecided by one configuration may be decided earlier by another, and would be kept back as delivered.
    """
    if before is None or before.configured in ("", shared.configured):
        return before
    shared.log.warning(
        "the last owner of %s/%d had another configuration, and has left no checkpoint: what is read again is decided "
        "anew, and what was delivered of it is delivered again",
        *(topic, number),
    )
    return None


def _find(
    topic: str, number: int, shared: SharedByPartitions, before: OwnersNote, checkpoint: bytes | None
) -> _Found | None:
    assert before.checkpoint is not None, "it names one"
    try:
        if checkpoint is None:
            raise ValueError("there is nothing")
        snapshot = PartitionSnapshot.read(checkpoint)
        if (snapshot.topic, snapshot.partition, snapshot.step) != (topic, number, before.checkpoint.step):
            raise ValueError(f"it is one of {snapshot.topic}/{snapshot.partition} at {snapshot.step.position}")
        return _restored(topic, number, shared, before, snapshot)
    except _UNREADABLE as error:
        shared.instruments.unreadable()
        shared.log.warning(
            "the checkpoint of %s/%d at %s can't be used, the partition is read from the committed offset on without "
            "it (decisions about traces under way may differ, numbers of attempts be lost): %s",
            *(topic, number, before.checkpoint.at, error),
        )
        return None


def _restored(
    topic: str, number: int, shared: SharedByPartitions, before: OwnersNote, snapshot: PartitionSnapshot
) -> _Found:
    states, succession = snapshot.states, None
    if states.generation == shared.generation:
        pipelines = shared.make_fed(topic, number)
    else:
        settings = states.generation.settings()
        succession = PendingSuccession(settings, states.generation, before.end)
        pipelines = shared.make(settings.pipelines, settings, topic, number)
    try:
        for pipeline in pipelines:
            for problem in pipeline.checkpointer.restore(states.chain(pipeline.id)):
                shared.instruments.unreadable()
                shared.log.warning(
                    "a part of the checkpoint of %s/%d can't be used, what was remembered there is lost: %s",
                    *(topic, number, problem),
                )
    except CheckpointError:
        for pipeline in pipelines:
            pipeline.forget()
        raise
    return _Found(snapshot, pipelines, succession)
