"""Partitions as brokers keep them: records, what is committed, three slots for checkpoints; and what was delivered."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from podtrail.component import Commit, PartitionRecord
from podtrail.otlp import Batch, Group, Status, encode_span, frame, resource_header, scope_header
from podtrail.partitioned.note import OwnersNote

SECOND = 1_000_000_000
IDLE = 5 * SECOND
"""How far the time of a partition whose end is reached is behind the clock on the wall, at most."""
_START = 1_800_000_000 * SECOND
_RESOURCE = resource_header({"service.name": "kube-scheduler"})
_SCOPE = scope_header("simulated")


class FencedOff(Exception):
    """Somebody else owns the partition."""


class CommitFailed(Exception):
    """A commit was not acknowledged; whether it is there is not known."""


def wall(time: float) -> int:
    """The loop's time as Unix nanoseconds."""
    return _START + int(time * SECOND)


@dataclass(frozen=True, slots=True)
class Begun:
    """What an owner has begun with."""

    by: int
    """The epoch of who has committed it."""
    at: float
    """When it was as it was committed."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A batch that has got to the backend."""

    key: str
    """Tells it from others."""
    spans: frozenset[bytes]
    """Their ids."""
    time: float
    epoch: int
    """Whose it was."""


@dataclass
class PartitionLog:
    """One partition."""

    number: int
    records: Sequence[PartitionRecord]
    appended: Sequence[int]
    """When each of them was, Unix nanoseconds; its own time may be earlier."""
    committed: Commit | None = None
    begun: dict[int, Begun] = field(default_factory=dict)
    """By epoch."""
    slots: list[tuple[str, bytes] | None] = field(default_factory=lambda: [None] * 3)
    epoch: int = 0
    """Counts owners."""
    marks: dict[int, int] = field(default_factory=dict)
    """How far time has passed without a record, by position."""
    deliveries: list[Delivery] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _next: Begun = field(default_factory=lambda: Begun(0, 0.0))
    _mark: tuple[int, int] | None = None
    """One that is committed, and at which time has not passed yet."""

    def end(self, there: int) -> int:
        """The offset behind the last record that is there at a time, Unix nanoseconds."""
        return bisect_right(self.appended, there)

    def commit(self, epoch: int, commit: Commit, now: float, mark: tuple[int, int] | None = None) -> None:
        """Commit for an owner, unless there is another by now."""
        if epoch != self.epoch:
            raise FencedOff
        if len(commit.metadata) >= 4096:
            self.wrong.append("a commit says more than there is room for")
        if _delivered(commit) != _delivered(self.committed):
            self._next = Begun(epoch, now)
        self.committed = commit
        self._mark = mark
        if mark is not None and mark[0] != self.end(mark[1] + IDLE):
            self.wrong.append(f"at {now:.3f} time was let pass at {mark[0]}, which is not the end")

    def time_passes(self) -> None:
        """Note that time passes at the mark committed last, or is bound to."""
        if self._mark is not None:
            position, until = self._mark
            self.marks[position] = max(until, self.marks.get(position, 0))
            self._mark = None

    def is_owned_by_another(self) -> None:
        """Have another owner, who begins with what is committed."""
        self.epoch += 1
        self.begun[self.epoch] = self._next
        self.time_passes()

    def checkpoint(self, at: str | None) -> bytes | None:
        """What was written in a place, if it is still there."""
        return next((data for place, data in filter(None, self.slots) if place == at), None)


def _delivered(commit: Commit | None) -> OwnersNote | None:
    """What a commit says of what left and was delivered."""
    note = OwnersNote.read(commit) if commit is not None else None
    return note and replace(note, marks=(), checkpoint=None, begins=0)


def partition_log(number: int, seed: int, records: int, begin: float, end: float) -> PartitionLog:
    """A partition with traffic: traces whose spans come in several records, pauses, times that go back."""
    rng = random.Random(f"{seed}/{number}")
    quiet_from = rng.uniform(begin, end)
    quiet_until = min(end, quiet_from + (end - begin) / 4)
    times = sorted(quiet_until if quiet_from < at < quiet_until else at for at in (
        rng.uniform(begin, end) for _ in range(records)
    ))  # fmt: skip
    open_traces: list[bytes] = []
    made = []
    for offset, at in enumerate(times):
        groups = []
        for _ in range(rng.choice([1, 1, 2])):
            if open_traces and rng.random() < 0.5:
                trace_id = rng.choice(open_traces)
            else:
                trace_id = number.to_bytes(4) + rng.randbytes(12)
                open_traces = [*open_traces[-5:], trace_id]
            groups.append(_group(rng, trace_id, wall(at)))
        batch = Batch(groups, 0) if rng.random() < 0.95 else None
        made.append(PartitionRecord(offset, wall(at) - rng.choice([0, 0, 0, SECOND // 20, 9 * SECOND]), batch))
    return PartitionLog(number, made, [wall(at) for at in times])


def _group(rng: random.Random, trace_id: bytes, time: int) -> Group:
    spans = [
        encode_span(
            trace_id=trace_id,
            span_id=rng.randbytes(8),
            parent_span_id=bytes(8) if not at else b"\1" * 8,
            name="SchedulingCycle",
            start=time - SECOND // 100,
            end=time,
            status=Status(2, "failed") if rng.random() < 0.1 else None,
            attributes={},
            links=[],
        )
        for at in range(rng.choice([1, 2, 3]))
    ]
    return Group(_RESOURCE, _SCOPE, trace_id, frame(spans), len(spans))
