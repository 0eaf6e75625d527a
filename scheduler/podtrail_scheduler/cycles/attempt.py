"""One scheduling attempt of one Pod: what it came to, and the spans around it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from podtrail_instrumentation import Span

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import NodeRefusal, fit_message
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.runtime.calling import PhaseFailure


class AttemptRecord(NamedTuple):
    """What came of an attempt; times in unix nanoseconds."""

    pod: Pod
    number: int
    result: str
    """Success, Unschedulable or Error."""
    message: str
    refused_by: frozenset[str]
    node: str
    started: int
    ended: int


class AttemptFailure(NamedTuple):
    """Why an attempt did not end in a bound Pod."""

    result: str
    message: str
    refused_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    nominated_node: str | None = ""
    """The node that preemption makes room on; empty to give up an earlier one, None to leave it."""


@dataclass(slots=True, eq=False)
class RunningAttempt:
    """An attempt under way."""

    entry: QueuedPod
    pod: Pod
    root: Span
    state: CycleState
    node: str = ""
    """The chosen node."""
    waiting: WaitingPod | None = None
    evaluated: int = 0
    """How many nodes were looked at."""
    feasible: int = 0
    cycle_took: int = 0
    """Nanoseconds of the scheduling cycle."""
    explanation: "ScoreExplanation | None" = None


@dataclass(slots=True)
class ScoreExplanation:
    """How plugins scored the nodes that fit; kept only when somebody asks for it."""

    feasible: list[str] = field(default_factory=list)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """By plugin and node, weighted."""
    totals: dict[str, int] = field(default_factory=dict)
    """By node."""


def failed_on_node(refused: PhaseFailure, node: str) -> AttemptFailure:
    """The failure when a plugin turned a Pod down on the node that was chosen for it, at Reserve or Permit."""
    status = refused.status
    if not status.rejected:
        return AttemptFailure("Error", status.message)
    message = fit_message(1, [NodeRefusal(refused.plugin, status, [node])])
    if status.pending:
        return AttemptFailure("Unschedulable", message, pending_on=frozenset((refused.plugin,)))
    return AttemptFailure("Unschedulable", message, frozenset((refused.plugin,)))
