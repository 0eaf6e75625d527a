"""When the scheduler of each cluster worked with which configuration, as its attempts say: for pictures over time.

Bounded, and not by how many attempts are held: changes stay known after the attempts around them are forgotten.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_MOST_CLUSTERS: Final = 64
_MOST_RUNS: Final = 200
"""Configurations one behind the other, of a cluster; the oldest go."""


class SeenChange(NamedTuple):
    """A configuration with which attempts began after those with another one."""

    at_unix_nano: int
    """Start of the first attempt with it."""
    before: str
    after: str
    cluster: str


@dataclass(slots=True)
class _Run:
    first: int
    last: int
    generation: str


class ConfigurationRuns:
    """Notes attempts in any order."""

    def __init__(self) -> None:
        self._runs: dict[str, list[_Run]] = {}

    def note(self, cluster: str, generation: str, start: int) -> None:
        """Take note of an attempt that began at `start`; one that does not name its configuration changes nothing."""
        if not generation or (cluster not in self._runs and len(self._runs) >= _MOST_CLUSTERS):
            return
        runs = self._runs.setdefault(cluster, [])
        at = bisect_right(runs, start, key=lambda run: run.first)
        before = runs[at - 1] if at else None
        if before is not None and before.generation == generation:
            before.last = max(before.last, start)
        elif before is not None and start < before.last:  # it came late: there was a change and a change back
            runs[at:at] = [_Run(start, start, generation), _Run(before.last, before.last, before.generation)]
            before.last = before.first
        elif at < len(runs) and runs[at].generation == generation:
            runs[at].first = start
        else:
            runs.insert(at, _Run(start, start, generation))
        del runs[:-_MOST_RUNS]

    def changes(self, cluster: str | None = None) -> list[SeenChange]:
        """Return the changes of all clusters, or of one, the earliest first."""
        wanted = self._runs.items() if cluster is None else [(cluster, self._runs.get(cluster, []))]
        found = [
            SeenChange(after.first, before.generation, after.generation, name)
            for name, runs in wanted
            for before, after in pairwise(runs)
            if before.generation != after.generation
        ]
        return sorted(found)
