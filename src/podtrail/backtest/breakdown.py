"""What each side keeps, by namespace, profile, result and plugin, and by policy. Tables are bounded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from podtrail.backtest.weight import WeightedTotal
from podtrail.otlp import Verdict

MOST_ROWS: Final = 1_000
"""Of a table: names come from spans. All further ones share a row."""
REST: Final = "(all others)"
NOBODY: Final = "(none)"


@dataclass(slots=True)
class BreakdownCount:
    """One row: how many attempts there were, and what each side keeps of them."""

    name: str
    attempts: int
    kept: list[int]
    """Attempts, by side."""
    spans: list[WeightedTotal]
    """Kept, by side."""
    size: list[WeightedTotal]
    """Bytes of kept spans, by side."""


class Breakdown:
    """Attempts by their namespace, profile, result or plugin; bounded."""

    def __init__(self, by: str, sides: int) -> None:
        """Make one: `by` says what the names are."""
        self.by = by
        self._sides = range(sides)
        self._rows: dict[str, BreakdownCount] = {}

    def add(self, names: Iterable[str], bits: int, spans: int, size: int, probability: float) -> None:
        """Count an attempt that has these names, kept by the sides in `bits`."""
        for name in set(names) or {""}:
            row = self._row(name or NOBODY)
            row.attempts += 1
            for side in self._sides:
                if bits >> side & 1:
                    row.kept[side] += 1
                    row.spans[side].add(spans, probability)
                    row.size[side].add(size, probability)

    @property
    def rows(self) -> list[BreakdownCount]:
        """The rows, those with most attempts first."""
        return sorted(self._rows.values(), key=lambda row: (row.name == REST, -row.attempts, row.name))

    def _row(self, name: str) -> BreakdownCount:
        if name not in self._rows and len(self._rows) >= MOST_ROWS:
            name = REST
        if name not in self._rows:
            totals = [[WeightedTotal() for _ in self._sides] for _ in range(2)]
            self._rows[name] = BreakdownCount(name, 0, [0 for _ in self._sides], *totals)
        return self._rows[name]


@dataclass(slots=True)
class PolicyCount:
    """What one policy of one side did."""

    voted_yes: int = 0
    decided: int = 0
    """Traces it kept or, a drop policy, dropped."""
    only_it: int = 0
    """Traces that would be lost without it: no other policy that was asked said yes."""
    spans: int = 0
    """Of traces it decided to keep."""


@dataclass(slots=True)
class PolicyTable:
    """What each policy of one side voted and decided."""

    named: Sequence[str]
    """The policies of the configuration, in order: each has its row."""
    asks_all: bool = True
    """False where the first yes ends the vote, so that nobody knows what the others would have said."""
    rows: dict[str, PolicyCount] = field(init=False)
    traces: int = 0
    spans: int = 0
    kept: int = 0
    kept_spans: int = 0

    def __post_init__(self) -> None:
        """Give each policy its row."""
        self.rows = {name: PolicyCount() for name in self.named}

    def add(self, verdict: Verdict) -> None:
        """Count a decision."""
        self.traces += not verdict.late
        self.spans += verdict.spans
        yes = [policy for policy, vote in verdict.votes.items() if vote == "sampled"]
        for policy in yes:
            self._row(policy).voted_yes += 1
        if verdict.decision == "dropped" and verdict.policy:
            self._row(verdict.policy).decided += 1
        if verdict.decision != "sampled":
            return
        self.kept += 1
        self.kept_spans += verdict.spans
        row = self._row(verdict.policy)
        row.decided += 1
        row.spans += verdict.spans
        row.only_it += yes in ([], [verdict.policy])  # [] where no policy said yes: kept by a link, or rescued

    def _row(self, name: str) -> PolicyCount:
        return self.rows.setdefault(name, PolicyCount())
