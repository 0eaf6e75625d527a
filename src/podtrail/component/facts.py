"""Facts that no span carries, handed from receivers to extensions: Pods that wait, and time that is simulated."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A Pod that PreEnqueue holds back: the scheduler has not tried it, so it has no attempt and no trace."""

    uid: str
    namespace: str
    name: str
    gates: tuple[str, ...]
    """What holds it back; empty: nothing any more, it may be tried now."""
    since: int
    """Unix nanoseconds."""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A Pod that waits for a node, or has waited, as a watch or the scheduler's log shows it."""

    uid: str
    """"" where only a log shows it."""
    namespace: str
    name: str
    since: int
    """When it was created, Unix nanoseconds; 0 where that is unknown."""
    scheduler: str = ""
    """The scheduler that it asks for."""
    gates: tuple[str, ...] = ()
    """Its scheduling gates."""
    held_by: str = ""
    """What else keeps the scheduler from trying it."""
    bound: bool = False
    """Whether it has a node, and no longer waits."""
    node: str = ""
    """Its node, where that is known."""
    deleted: int = 0
    """When it was deleted, Unix nanoseconds; 0 while it exists."""
    follows: int = 0
    """When the Pod that had its name before was deleted, Unix nanoseconds, if it has no uid; 0 for none."""
    at: int = field(default=0, compare=False)
    """When this was seen, Unix nanoseconds."""


@dataclass(frozen=True, slots=True)
class SimulatedTime:
    """A receiver's spans are of a simulation: its clock is not ours, and stands still once it has ended."""

    until: int
    """Unix nanoseconds: nothing simulated is later, and what comes with a later time is not simulated."""


@dataclass(frozen=True, slots=True)
class LiveSource:
    """A receiver has caught up with its source: what it reports happens now, also while nothing happens."""


Fact = GatedPod | LiveSource | ObservedPod | SimulatedTime


@runtime_checkable
class FactListener(Protocol):
    """An extension (or another observer) that takes facts besides spans."""

    def note(self, fact: Fact) -> None:
        """Take note; must be quick and must not raise."""
