"""What podtrail rebuilds from a recording of the matrix: from its log, from its watches, from both, or live."""

import heapq
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from podtrail.cli.scheduler_files import rebuild
from podtrail.otlp import SpanView, split
from podtrail.reconstruction import LAG, ClockReading, Correlator, LineCounts, SchedulerLog, Session, trace
from tests.reconstruction.versions.matrix import Recording

SOURCES: Final = ("log", "watch", "both")
ZONES: Final = {"kube-scheduler-second": "Asia/Kolkata"}
"""TZ of a scheduler that is not that of its run."""
_TICK: Final = 1_000_000_000


class Attempt(NamedTuple):
    """The spans of one attempt, and the attributes of the root."""

    root: dict[str, Any]
    spans: list[SpanView]

    @property
    def result(self) -> str:
        """How it ended; "" if that is not known."""
        return str(self.root.get("scheduler.result", ""))

    @property
    def pod(self) -> str:
        """The name of the Pod."""
        return str(self.root["k8s.pod.name"])


def results(attempts: list[Attempt]) -> Counter[str]:
    """Count attempts by result."""
    return Counter(attempt.result for attempt in attempts)


def read_attempt(spans: bytes) -> Attempt:
    """Read the spans of a trace, of which the root is the last."""
    views = [SpanView(raw) for raw in split(spans)]
    return Attempt(dict(views[-1].attributes), views)


def of_files(recording: Recording, source: str) -> list[Attempt]:
    """Return the attempts that `podtrail reconstruct` finds in each log with its time zone, in watches, or in all."""
    watches = {kind: [recording.watch(kind)] if source != "log" else [] for kind in ("pods", "events")}
    counts = {kind: LineCounts() for kind in ("log", "pods", "events")}
    if source == "log":
        zones = {recording.log(name): zone_of_log(recording, name) for name in recording.counted_by}
        parts = [rebuild(Correlator(), [log], {}, counts, recording.year, zone) for log, zone in zones.items()]
    else:
        parts = [rebuild(Correlator(), recording.logs if source == "both" else [], watches, counts)]
    attempts = [read_attempt(trace(one).spans) for part in parts for one in part]
    assert not counts["log"].unknown, counts["log"].unknown
    return attempts


def zone_of_log(recording: Recording, scheduler: str) -> str:
    """Return TZ of a scheduler's process."""
    return ZONES.get(scheduler, recording.run.zone)


def live(recording: Recording, scheduler: str) -> tuple[list[Attempt], Counter[str]]:
    """Return the attempts that a podtrail beside one of the schedulers finds, and its notes, as things come."""
    coming = sorted([*_logged(recording, scheduler), *_watched(recording)], key=itemgetter(0))
    session = Session(coming[0][0])
    groups, now = [], coming[0][0]
    for at, piece, told in coming:
        while now + _TICK < at:
            now += _TICK
            groups += session.expire(now)
        now = max(now, at)
        if isinstance(told, dict):
            session.listed(told["list"], at) if "list" in told else session.watched(told["event"], at)
        else:
            session.log(scheduler, piece, at, ClockReading(piece, at, live=True))
    for _ in range(60):
        now += _TICK
        groups += session.expire(now)
    groups += session.drain(now + LAG)
    return [read_attempt(group.spans) for group in groups], session.outcome.notes


def _logged(recording: Recording, scheduler: str) -> Iterator[tuple[int, bytes, None]]:
    """Yield the lines of a log at the times at which they were written."""
    zone = None if recording.run.format == "json" else ZoneInfo(zone_of_log(recording, scheduler))
    reader = SchedulerLog("log", recording.began, LineCounts(), zone)
    now = recording.began
    for line in recording.lines(recording.log(scheduler)):
        for _ in reader.read([line]):
            pass
        now = max(now, reader.written_until())
        yield now, line + b"\n", None


def _watched(recording: Recording) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    watches = []
    for kind in ("pods", "events"):
        told = [json.loads(line) for line in recording.lines(recording.watch(kind))]
        watches.append([(int(each["arrivalUnixNano"]), b"", each) for each in told])
    yield from heapq.merge(*watches, key=itemgetter(0))


@cache
def attempts_of(recording: Recording, source: str) -> list[Attempt]:
    """Return `of_files`, which is worked out once."""
    return of_files(recording, source)
