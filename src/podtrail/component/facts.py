"""Facts that no span carries, handed from receivers to extensions: Pods held back, and time that is simulated."""

from dataclasses import dataclass
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
class SimulatedTime:
    """A receiver's spans are of a simulation: its clock is not ours, and stands still once it has ended."""

    until: int
    """Unix nanoseconds: nothing simulated is later, and what comes with a later time is not simulated."""


Fact = GatedPod | SimulatedTime


@runtime_checkable
class FactListener(Protocol):
    """An extension (or another observer) that takes facts besides spans."""

    def note(self, fact: Fact) -> None:
        """Take note; must be quick and must not raise."""
