"""One scheduling attempt of one Pod: its record, and the spans around it."""

from typing import NamedTuple

from podtrail_instrumentation import Span

from .framework.cycle_state import CycleState
from .framework.diagnosis import Refusal, fit_message
from .framework.runtime import Refused
from .framework.waiting import WaitingPod
from .objects import Pod
from .queueing.entry import QueuedPod

ROOT_THRESHOLD = 100_000_000
"""From how many nanoseconds on an attempt is logged with its steps."""


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


class Failure(NamedTuple):
    """Why an attempt did not end in a bound Pod."""

    result: str
    message: str
    refused_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    nominated_node: str | None = None
    """The node that preemption makes room on; empty to give up an earlier one, None to leave it."""


class Attempt(NamedTuple):
    """An attempt under way."""

    entry: QueuedPod
    pod: Pod
    root: Span
    state: CycleState


class Choice(NamedTuple):
    """What the scheduling cycle came to: a node (and perhaps a wait before binding), or a failure."""

    node: str = ""
    failure: Failure | None = None
    waiting: WaitingPod | None = None


def failure_on_node(refused: Refused, node: str) -> Failure:
    """The failure when a plugin turned a Pod down on the node that was chosen for it."""
    result = refused.status.result
    if result == "Error":
        return Failure(result, refused.status.message)
    message = fit_message(1, [Refusal(refused.plugin, refused.status, [node])])
    return Failure(result, message, frozenset((refused.plugin,)), nominated_node="")
