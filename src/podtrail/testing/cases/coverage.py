"""Coverage of policies by the cases: which have said yes, and which have decided a trace."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from podtrail.testing.cases.judging import CaseResult


class CoverageRow(NamedTuple):
    """One policy of one configuration."""

    config: str
    policy: str
    fired: int
    """Traces of which it said yes; of a drop policy: to drop."""
    decided: int
    """Traces that it decided."""


class Coverage:
    """Counts votes over all cases."""

    def __init__(self) -> None:
        self._policies: dict[str, dict[str, None]] = {}
        self._fired: Counter[tuple[str, str]] = Counter()
        self._decided: Counter[tuple[str, str]] = Counter()

    def add(self, results: Iterable[CaseResult]) -> None:
        """Count what the cases came to."""
        for result in results:
            config = result.suite.config
            self._policies.setdefault(config, {}).update(dict.fromkeys(result.suite.policies))
            for verdict in result.verdicts:
                votes = {**verdict.votes, **(verdict.shadow.votes if verdict.shadow else {})}
                self._fired.update((config, name) for name, vote in votes.items() if vote != "not_sampled")
                self._decided[config, verdict.policy] += 1

    @property
    def rows(self) -> Sequence[CoverageRow]:
        """Every policy, in the order of its configuration."""
        return [
            CoverageRow(config, policy, self._fired[config, policy], self._decided[config, policy])
            for config, policies in self._policies.items()
            for policy in policies
        ]

    @property
    def uncovered(self) -> Sequence[CoverageRow]:
        """The policies that never said yes."""
        return [row for row in self.rows if not row.fired]

    def as_json(self) -> Sequence[Mapping[str, object]]:
        """Return the rows for JSON."""
        return [row._asdict() for row in self.rows]
