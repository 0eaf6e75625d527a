"""Lines read of a kind of source, each counted once: used, of no concern, or unknown, by reason."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class LineCounts:
    """Counts of the lines of one kind of source: `lines` is the sum of `used`, `other`, `continued` and `unknown`."""

    lines: int = 0
    used: int = 0
    """Lines that tell something of attempts."""
    other: int = 0
    """Lines in a known form that tell nothing of attempts."""
    continued: int = 0
    """Lines that belong to the one ahead."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Lines that could not be read, by reason."""
    told: Counter[str] = field(default_factory=Counter)
    """What the used ones told, by kind."""
    newest: int = 0
    """When the newest line was written, whatever it tells, Unix nanoseconds; set when the end is read."""
    notes: Counter[str] = field(default_factory=Counter)
    """What else is worth knowing: restarts, changes of the leader, times that go back."""

    def account(self, kind: str) -> None:
        """Count a line that was used."""
        self.used += 1
        self.told[kind] += 1
