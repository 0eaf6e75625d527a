"""The scheduler's own count of its attempts, from its `/metrics`."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_ATTEMPTS = re.compile(
    rb"scheduler_schedule_attempts_total\{(?P<labels>[^}]{0,1024})\} (?P<value>[0-9.eE+]{1,32})(?: \d+)?\s*"
)
_LABEL = re.compile(rb'(\w+)="((?:[^"\\]|\\.)*)"')
_LEADER = re.compile(rb'leader_election_master_status\{name="[^"]{0,256}"\} (?P<leads>[01])(?:\.0)?(?: \d+)?\s*')
RESULTS = {"scheduled": "Success", "unschedulable": "Unschedulable", "error": "Error"}


class Counted(NamedTuple):
    """Attempts as the scheduler counted them since it started."""

    profile: str
    result: str
    """`Success`, `Unschedulable` or `Error`."""
    attempts: int


def read_attempts(lines: Iterable[bytes]) -> list[Counted]:
    """Return the counts of a page; of several of one profile and result the last. Other lines are passed over."""
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        found = _ATTEMPTS.fullmatch(line)
        if found is None:
            continue
        labels = {key.decode(): value.decode("utf-8", "replace") for key, value in _LABEL.findall(found["labels"])}
        try:
            count = int(float(found["value"]))
        except (ValueError, OverflowError):
            continue
        if (result := RESULTS.get(labels.get("result", ""))) and len(counts) < 1000:
            counts[labels.get("profile", ""), result] = count
    return [Counted(profile, result, count) for (profile, result), count in counts.items()]


def leader_status(lines: Iterable[bytes]) -> bool | None:
    """Return whether a page says that its scheduler is the leader; None if it says nothing of that."""
    found = [line["leads"] == b"1" for line in map(_LEADER.fullmatch, lines) if line]
    return any(found) if found else None


class Untold:
    """Compares the scheduler's count with what was told since the first look at it."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._latest: Counter[str] = Counter()

    def scraped(self, counted: Iterable[Counted], told: Mapping[tuple[str, str], int]) -> Counter[str]:
        """Return by result how many attempts were counted and not told; `told` is by profile and result.

        Attempts that have just ended are not told yet. A count that has become less begins anew: the scheduler did.
        """
        now: Counter[str] = Counter()
        for one in counted:
            now[one.result] += one.attempts
        sums: Counter[str] = Counter()
        for (_, result), count in told.items():
            sums[result] += count
        if not self._latest or any(now[result] < count for result, count in self._latest.items()):
            self._counted, self._told = now, sums
        self._latest = now
        return +Counter(
            {result: now[result] - self._counted[result] - sums[result] + self._told[result] for result in now}
        )
