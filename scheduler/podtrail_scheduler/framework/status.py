"""What a plugin answers. `None` is Success; everything else is a `Status` with a code and reasons."""

from enum import IntEnum
from typing import NamedTuple


class Code(IntEnum):
    """The seven codes, in the Scheduling Framework's order."""

    SUCCESS = 0
    ERROR = 1
    """An internal failure: the attempt ends, the Pod comes back after error back-off."""
    UNSCHEDULABLE = 2
    """Not here and now: preemption may help, the Pod waits for an event that the plugin asked for."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Not here, and preemption would not help either."""
    WAIT = 4
    """Permit only: the binding cycle waits until somebody allows or rejects the Pod."""
    SKIP = 5
    """The coupled plugin (Filter of a PreFilter, Score of a PreScore) or this binder has nothing to do."""
    PENDING = 6
    """The plugin waits for something outside; when it comes the Pod is retried without back-off."""

    @property
    def text(self) -> str:
        """The name as Kubernetes writes it."""
        return _TEXTS[self]


_TEXTS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTED = frozenset((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING))


class Status(NamedTuple):
    """A code and why."""

    code: Code
    reasons: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The reasons in one text."""
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """Whether the Pod was refused, as opposed to something having failed."""
        return self.code in _REJECTED

    @property
    def pending(self) -> bool:
        """Whether it waits for something outside, so that back-off is of no use."""
        return self.code is Code.PENDING

    @property
    def result(self) -> str:
        """The attempt's `scheduler.result` that follows from it: Success, Unschedulable or Error."""
        if self.rejected:
            return "Unschedulable"
        return "Error" if self.code is Code.ERROR else "Success"


SKIP = Status(Code.SKIP)


def error(message: str) -> Status:
    """A Status with code ERROR: an internal failure, which ends the attempt."""
    return Status(Code.ERROR, (message,))


def unschedulable(*reasons: str) -> Status:
    """A refusal that preemption or a later event may turn."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A refusal that preemption cannot turn."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)
