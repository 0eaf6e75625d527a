"""Runs of a real scheduler, and what is rebuilt from their parts."""

import gzip
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from podtrail.reconstruction import (
    Correlator,
    Heard,
    LineCounts,
    Outcome,
    Rebuilt,
    SchedulerLog,
    WatchReader,
    read_attempts,
)

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"
NEAR = 1_795_259_525_000_000_000
LONGEST = 64 << 20


@dataclass(frozen=True)
class Result:
    """Attempts with what was counted on the way."""

    attempts: Sequence[Rebuilt]
    outcome: Outcome
    log: LineCounts
    watch: LineCounts

    def of(self, pod: str) -> list[Rebuilt]:
        """Return a Pod's attempts in order."""
        return [one for one in self.attempts if one.identity.pod == pod]

    def results(self, pod: str) -> list[str]:
        """Return how a Pod's attempts ended."""
        return [one.draft.result for one in self.of(pod)]


def lines_of(name: str) -> list[bytes]:
    """Return a file of the runs."""
    return gzip.decompress((DATA / f"{name}.gz").read_bytes()).splitlines()


def rebuild(logs: Iterable[Iterable[bytes]] = (), watches: Iterable[Iterable[bytes]] = ()) -> Result:
    """Rebuild attempts from lines of logs and of watches."""
    log, watch, correlator = LineCounts(), LineCounts(), Correlator()
    readers = [(SchedulerLog("log", NEAR, log), lines) for lines in logs]
    heard: list[Iterator[Heard]] = [chain(reader.read(lines), reader.end()) for reader, lines in readers]
    heard += [WatchReader(watch).read(lines, LONGEST) for lines in watches]
    attempts = [done for one in heapq.merge(*heard, key=attrgetter("time")) for done in correlator.feed(one)]
    attempts += correlator.finish()
    return Result(attempts, correlator.outcome, log, watch)


@cache
def _run(run: str, sources: tuple[str, ...]) -> Result:
    logs = [lines_of(f"{run}.log")] if "log" in sources else []
    return rebuild(logs, [lines_of(f"{run}.{source}.jsonl") for source in sources if source != "log"])


@dataclass(frozen=True)
class Runs:
    """What tests ask of the recorded runs."""

    lines: Callable[[str], list[bytes]] = lines_of
    rebuild: Callable[..., Result] = rebuild

    def of(self, run: str, *sources: str) -> Result:
        """Return what some sources of a run give."""
        return _run(run, sources)

    def actions(self, run: str) -> list[dict[str, Any]]:
        """Return what was done in a run."""
        return [json.loads(line) for line in lines_of(f"{run}.actions.jsonl")]

    def counted(self, run: str) -> dict[tuple[str, str], int]:
        """Return the scheduler's own count, by profile and result."""
        page = (DATA / f"{run}.prom").read_bytes().splitlines()
        return {(one.profile, one.result): one.attempts for one in read_attempts(page)}


@pytest.fixture(scope="session")
def runs() -> Runs:
    """The recorded runs."""
    return Runs()
