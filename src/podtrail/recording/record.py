"""What a recording holds: requests with their arrivals, and places where it is damaged."""

from dataclasses import dataclass
from typing import NamedTuple

from podtrail.otlp import Intake


@dataclass(frozen=True, slots=True)
class RecordingPosition:
    """A place in a recording."""

    path: str
    number: int
    """Of a line, counted from 1, or of a byte of the uncompressed content, counted from 0."""
    unit: str
    """`line` or `byte`."""

    def __str__(self) -> str:
        return f"{self.path}:{self.number}" if self.unit == "line" else f"{self.path} at byte {self.number}"


class RecordingProgress(NamedTuple):
    """How far a recording was read: what another decoder must know to go on from there."""

    offset: int = 0
    """Bytes of the uncompressed content."""
    unit: str = ""
    """What it counts, which says how it is parted; "" where its next bytes say it."""
    lines: int = 0
    arrival: int = 0
    """The latest so far, Unix nanoseconds."""


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded request."""

    arrival: int
    """Unix nanoseconds; never before the record ahead. 0 when neither it nor its spans say a time."""
    intake: Intake
    """Its spans."""
    position: RecordingPosition
    timed: bool
    """Whether the request itself says its arrival; else it is the latest end of its spans."""
    put_off: int = 0
    """Nanoseconds by which it says that it arrived before the record ahead: `arrival` is that one's."""
    progress: RecordingProgress | None = None
    """Behind it; None in a document, which is read whole."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What could not be read. Reading goes on behind it."""

    position: RecordingPosition
    reason: str
    progress: RecordingProgress | None = None
    """As of a record; None also where the next one still has to be found."""

    def __str__(self) -> str:
        return f"{self.position}: {self.reason}"


@dataclass(frozen=True, slots=True)
class OtherSignal(Damage):
    """A request of another signal, which is skipped: the file is as sound as without it."""

    signal: str = ""
    """`logs`, `metrics` or `profiles`."""
