"""When the state of a partition is worth a checkpoint, and what is in it."""

from collections.abc import Sequence
from typing import Final

from podtrail.durable.pace import CheckpointPace
from podtrail.durable.state import PipelineStates
from podtrail.partitioned.committing import PartitionCommits
from podtrail.partitioned.delivered import PartitionStep
from podtrail.partitioned.note import CheckpointPlace
from podtrail.partitioned.snapshot import PartitionSnapshot
from podtrail.partitioned.state import PartitionState
from podtrail.pipeline.checkpoint import CheckpointError

_MOST_MARKS: Final = 64
"""Since the last checkpoint: they have to find room in what is committed."""
_LEAST_READ: Final = 4 << 20
"""Bytes of spans that are read before another checkpoint is worth it: read again in a fraction of a second."""


class PartitionCheckpoints:
    """Takes checkpoints of one partition."""

    def __init__(self, state: PartitionState, commits: PartitionCommits, *, keeps_checkpoints: bool) -> None:
        """Take them of this partition, for these commits to name; none are due unless it `keeps_checkpoints`."""
        self._state = state
        self._commits = commits
        self._keeps_checkpoints = keeps_checkpoints
        self._pace = CheckpointPace(_LEAST_READ)
        self._size = 0
        self._taken: PartitionStep | None = None
        """When the last was taken."""
        self._successions = self._succeeded = self._of = 0
        """How often processors were taken over from: until now, until the checkpoint named, until the one taken."""

    def take_over(self) -> None:
        """Note that other processors take over: whoever is next shall begin with them."""
        self._commits.take_over()
        self._successions += 1

    def is_due(self) -> bool:
        """Return whether it is time to write one."""
        state, commits = self._state, self._commits
        if not self._keeps_checkpoints or state.position is None or state.replays():
            return False
        if self._succeeded != self._successions or commits.is_held_up:
            return True
        if not state.remembers:
            return False
        marks = [mark for mark in commits.marks if commits.place is None or mark > commits.place.step]
        return len(marks) > _MOST_MARKS or self._pace.due(state.read, state.inside, state.came)

    def take(self) -> Sequence[bytes | memoryview] | None:
        """Return the state as it is now, in pieces; None when it can't be taken, which was told and counted."""
        state = self._state
        if state.position is None:
            return None
        self._pace.begun(state.inside, state.came)
        state.read = 0
        try:
            chains = {pipeline.id: pipeline.checkpointer.take() for pipeline in state.pipelines}
        except CheckpointError as error:
            self._not_taken(error)
            return None
        owed = list(state.leaving.undelivered)
        states = PipelineStates(
            generation=state.succession.generation if state.succession else state.shared.generation,
            reached=dict.fromkeys(chains, state.told),
            chains=chains,
            owed=[(way, each.batch) for way, each in owed],
            recent=b"",
        )
        self._taken, self._of = PartitionStep(state.position, state.reached), self._successions
        snapshot = PartitionSnapshot(
            state.topic,
            state.number,
            self._taken,
            states,
            [each.step for _, each in owed],
            {pipeline.id: list(pipeline.steps) for pipeline in state.pipelines},
            state.arrivals.kept(),
        )
        try:
            pieces = snapshot.pieces()
        except CheckpointError as error:
            self._not_taken(error)
            return None
        self._size = sum(map(len, pieces))
        return pieces

    def _not_taken(self, error: CheckpointError) -> None:
        state = self._state
        state.shared.log.error("a checkpoint of %s/%d can't be taken: %s", state.topic, state.number, error)
        state.shared.instruments.not_taken()

    def written(self, at: str) -> None:
        """Have commits name the one taken last: it can be read again at `at`."""
        assert self._taken is not None, "one was taken"
        self._succeeded = self._of
        self._pace.ended(self._size)
        self._commits.checkpointed(CheckpointPlace(at, self._taken), of_successors=self._succeeded == self._successions)
