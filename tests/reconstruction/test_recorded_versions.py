"""The matrix of real kube-schedulers as `./dev versions --record` left it: attempts equal their counters."""

import heapq
import json
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from zoneinfo import ZoneInfo

import pytest

from podtrail.reconstruction import Correlator, Heard, LineCounts, Rebuilt, SchedulerLog, WatchReader
from tests.reconstruction.versions.facts import DOCUMENT, replaced, table
from tests.reconstruction.versions.matrix import RECORDED, RUNS, VERSIONS, Recording
from tests.reconstruction.versions.rebuilding import zone_of_log
from tests.reconstruction.versions.verdict import differences, predicted

RECORDINGS = {(minor, run.name): Recording(RECORDED, minor, run) for minor in VERSIONS for run in RUNS}


@pytest.mark.parametrize("minor", list(VERSIONS))
@pytest.mark.parametrize("run", [run.name for run in RUNS])
def test_attempts_equal_the_counters_or_what_the_page_predicts(minor: str, run: str) -> None:
    recording = RECORDINGS[minor, run]
    assert sum(recording.counted.values()) > 16
    assert differences(recording) == []


@pytest.mark.parametrize("seconds", [0.3, 2, 5, 25])
@pytest.mark.parametrize("run", ["v0", "v5", "handover"])
def test_a_clock_of_the_scheduler_that_is_ahead_of_the_watch_invents_no_attempt(run: str, seconds: float) -> None:
    """What watches show has come so much earlier by their clock."""
    recording = RECORDINGS["1.37", run]
    found = Counter(one.draft.result for one in skewed(recording, int(seconds * 10**9)))
    assert found == predicted(recording, "both")


def skewed(recording: Recording, by: int) -> Iterator[Rebuilt]:
    heard: list[list[Heard]] = []
    for name in recording.counted_by:
        reader = SchedulerLog(name, recording.began, LineCounts(), ZoneInfo(zone_of_log(recording, name)))
        heard.append([*reader.read(recording.lines(recording.log(name))), *reader.end()])
    for kind in ("pods", "events"):
        lines = [json.loads(line) for line in recording.lines(recording.watch(kind))]
        earlier = (one | {"arrivalUnixNano": str(int(one["arrivalUnixNano"]) - by)} for one in lines)
        heard.append([*WatchReader(LineCounts()).read((json.dumps(one).encode() for one in earlier), 1 << 24)])
    correlator = Correlator()
    for one in heapq.merge(*heard, key=attrgetter("time")):
        yield from correlator.feed(one)
    yield from correlator.finish()


def test_the_table_of_facts_is_that_of_the_recordings() -> None:
    page = DOCUMENT.read_text("utf-8")
    assert replaced(page, table(lambda minor, run: RECORDINGS[minor, run])) == page
