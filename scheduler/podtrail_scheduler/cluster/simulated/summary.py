"""What became of a simulation, in numbers that a person can check."""

from collections import Counter
from dataclasses import dataclass, field

from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.queueing.queue import SchedulingQueue


@dataclass(frozen=True)
class PendingPod:
    """A Pod that has no node."""

    key: str
    uid: str
    queue: str
    """active, backoff, unschedulable or gated."""
    attempts: int
    refused_by: tuple[str, ...]
    message: str
    gates: tuple[str, ...]
    """Its scheduling gates that are left."""
    created: int
    """Unix nanoseconds."""


@dataclass
class Totals:
    """The scheduler's own count, which traces can be checked against."""

    attempts: Counter[str] = field(default_factory=Counter)
    """By result."""
    refusals: Counter[str] = field(default_factory=Counter)
    """How many attempts each plugin refused."""

    def count(self, record: AttemptRecord) -> None:
        """Counts an attempt that is over."""
        self.attempts[record.result] += 1
        self.refusals.update(record.refused_by)


@dataclass(frozen=True)
class Summary:
    """What has become of a workload; `simulated` is nanoseconds since the start."""

    simulated: int
    created: int
    bound: int
    finished: int
    preempted: int
    deleted: int
    """By somebody else, or with their node."""
    attempts: dict[str, int]
    refusals: dict[str, int]
    pending: tuple[PendingPod, ...]

    @property
    def pending_because_of(self) -> dict[str, int]:
        """How many pending Pods each plugin refused last or keeps gated."""
        return dict(Counter(plugin for pod in self.pending for plugin in pod.refused_by).most_common())


def pending_pods(queue: SchedulingQueue) -> tuple[PendingPod, ...]:
    """Every Pod in the queue, those that have waited longest first within each part of it."""
    return tuple(
        PendingPod(
            entry.pod.key,
            entry.pod.uid,
            name,
            entry.attempts,
            tuple(sorted(entry.refused_by)),
            entry.message,
            entry.pod.scheduling_gates,
            entry.pod.creation_timestamp,
        )
        for name, entries in queue.pending().items()
        for entry in sorted(entries, key=lambda entry: (entry.pod.creation_timestamp, entry.pod.uid))
    )
