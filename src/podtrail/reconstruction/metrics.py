"""The scheduler's own count of its attempts, from its `/metrics`."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_ATTEMPTS = re.compile(
    rb"scheduler_schedule_attempts_total\{(?P<labels>[^}]{0,1024})\} (?P<value>[0-9.eE+]{1,32})(?: \d+)?\s*"
)
_LABEL = re.compile(rb'(\w+)="((?:[^"\\]|\\.)*)"')
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
