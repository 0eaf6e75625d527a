"""What may be committed for a partition, so that its next owner decides and delivers what is left of it, and the same.

Processors that remember have come to be what they are by every record since the last checkpoint, or, before the first,
since the first record. So without a checkpoint that is named nothing is committed behind that record; and what another
configuration has decided is committed with a checkpoint of its processors, not before.
"""

from collections.abc import Sequence
from dataclasses import replace

from podtrail.component import Commit
from podtrail.partitioned.arrivals import Arrival
from podtrail.partitioned.delivered import PartitionStep
from podtrail.partitioned.note import CheckpointPlace, OwnersNote
from podtrail.partitioned.state import PartitionState


class PartitionCommits:
    """Makes the commits of one partition."""

    def __init__(
        self, state: PartitionState, committed: Commit | None, place: CheckpointPlace | None, *, keeps_checkpoints: bool
    ) -> None:
        """Go on from what is committed.

        Args:
            state: the partition.
            committed: what is committed for it.
            place: where the checkpoint is that its processors were made from; None: they began with nothing.
            keeps_checkpoints: whether any are written.
        """
        self.place = place
        self.marks: list[PartitionStep] = list(state.before.marks) if state.before else []
        self._state = state
        self._keeps_checkpoints = keeps_checkpoints
        self._committed = committed
        self._floor = committed.offset if committed else 0
        self._first: Arrival | None = None
        """Of the first record that the processors know of, where they began with nothing."""
        self._until_checkpoint: tuple[int, OwnersNote] | None = None
        """What may be committed until there is a checkpoint of processors that have taken over."""

    def took(self, arrival: int, offset: int) -> None:
        """Note that processors were given a record that arrived at a time, Unix nanoseconds."""
        if self._first is None:
            self._first = arrival, offset

    def commit(self) -> Commit:
        """Return what may be committed now."""
        return self._commit(self.marks)

    def with_mark(self, now: int) -> Commit:
        """Return what must be committed before time passes without a record until `now`, Unix nanoseconds."""
        assert self._state.position is not None, "something is held"
        return self._commit(self._with(PartitionStep(self._state.position, now)))

    def add_mark(self, mark: PartitionStep) -> None:
        """Note that time passes at a mark."""
        self.marks = self._with(mark)
        self._state.ahead.append(self.marks[-1])

    def take_over(self) -> None:
        """Commit nothing of what processors decide that take over now, until there is a checkpoint of them."""
        if self._keeps_checkpoints and self._until_checkpoint is None:
            self._until_checkpoint = self._known()

    def checkpointed(self, place: CheckpointPlace, *, of_successors: bool) -> None:
        """Name a checkpoint; `of_successors`: it is one of the processors as they are configured now."""
        self.place = place
        if of_successors:
            self._until_checkpoint = None

    def end_at(self, position: int) -> None:
        """Note that records are gone that were taken once: the partition ends at a position."""
        self._floor = min(self._floor, position)

    @property
    def is_held_up(self) -> bool:
        """Whether more might be committed if there were a checkpoint, or something has left that only one remembers.

        Without one a next owner that is configured otherwise decides, and delivers, from the first record on.
        """
        if not self._keeps_checkpoints or self.place is not None or self._first is None or not self._state.remembers:
            return False
        return self._state.leaving.spans > 0 or self._offset()[0] > self._first[1]

    def _with(self, mark: PartitionStep) -> list[PartitionStep]:
        """Return all marks, with one more: the latest of each position."""
        last = self.marks[-1] if self.marks else None
        if last is None or last.position < mark.position:
            return [*self.marks, mark]
        return [*self.marks[:-1], max(last, mark)]

    def _commit(self, marks: Sequence[PartitionStep]) -> Commit:
        offset, note = self._known()
        self.marks = [mark for mark in self.marks if self._is_needed(mark, offset)]
        needed = tuple(mark for mark in marks if self._is_needed(mark, offset))
        return Commit(offset, self._written(note, needed))

    def _written(self, note: OwnersNote, marks: tuple[PartitionStep, ...]) -> str:
        return replace(note, marks=marks, checkpoint=self.place, topic_id=self._state.topic_id).write()

    def _known(self) -> tuple[int, OwnersNote]:
        """Return what may be committed, but for marks and checkpoint."""
        state = self._state
        if self._until_checkpoint is not None:
            return self._until_checkpoint
        if state.replays():
            assert state.before is not None
            assert self._committed is not None
            return self._committed.offset, state.before
        offset, begins = self._needed()
        leaving = [pipeline.steps[0].before() for pipeline in state.pipelines if pipeline.steps]
        out = min([state.left(), *leaving])
        undelivered = state.leaving.undelivered
        delivered = {way: undelivered.delivered(way, out) for way in undelivered.ways()}
        note = OwnersNote(out, begins, delivered, configured=state.configured)
        return max(offset, self._floor), note

    def _needed(self) -> tuple[int, int]:
        """Return the offset from which on records may be needed, and the time that processors were told before."""
        state = self._state
        state.arrivals.forget_before(state.oldest)
        offset, begins = self._offset()
        if self._first is not None and self.place is None and self._keeps_checkpoints and state.remembers:
            first, begin = self._first[1], self._first[0] - 1
            if first < offset:
                return first, begin
        return offset, begins

    def _offset(self) -> tuple[int, int]:
        """Return the offset of the oldest record that is undecided or undelivered, and the time before."""
        state = self._state
        assert state.position is not None, "a partition of which nothing is known has nothing to be committed"
        oldest = state.oldest
        if oldest is None:
            return state.position, state.reached
        needed = state.arrivals.find(oldest)
        if needed is None:  # it came before what is known
            return self._floor, state.before.begins if state.before else 0
        return needed[1], needed[0] - 1

    def _is_needed(self, mark: PartitionStep, offset: int) -> bool:
        """Say whether time must pass at a mark for whoever reads on from an offset or from the checkpoint."""
        return mark.position > offset or (self.place is not None and mark > self.place.step)
