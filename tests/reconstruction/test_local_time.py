"""klog writes local time: its offset from UTC is derived from each source that knows it, or given."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.reconstruction import ClockReading, LineCounts, SchedulerLog, Session
from podtrail.reconstruction.calendar import OFFSETS, zone_of
from podtrail.reconstruction.clock_offset import offsets_by_watch
from podtrail.reconstruction.scheduler_log import NO_ZONE, LineMeaning
from podtrail.reconstruction.vocabulary import Kind
from podtrail.reconstruction.watch import PodSeen

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler" / "local-time"
NOW = datetime(2026, 3, 28, 20, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def nanos(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**9


def line(utc: datetime, offset: timedelta, pod: str = "web-0") -> str:
    text = f'{utc + offset:I%m%d %H:%M:%S}.000000       1 a.go:1] "Successfully bound pod to node" '
    return f'{text}pod="shop/{pod}" node="n" evaluatedNodes=1 feasibleNodes=1'


def times(*lines: str, zone: str = "") -> list[datetime]:
    reader = SchedulerLog("log", nanos(NOW), LineCounts(), zone_of(zone) if zone else None)
    return [datetime.fromtimestamp(told.time / 1e9, UTC) for told in reader.read(one.encode() for one in lines)]


@pytest.mark.parametrize("offset", [timedelta(microseconds=offset // 1000) for offset in OFFSETS], ids=str)
def test_each_offset_that_a_zone_has_is_derived_from_the_envelope(offset: timedelta) -> None:
    utc = [NOW + minutes * timedelta(minutes=7) for minutes in range(3)]
    assert times(*(f"{one:%Y-%m-%dT%H:%M:%S.5Z} stderr F {line(one, offset)}" for one in utc)) == utc


def test_summer_time_begins_within_a_log() -> None:
    utc = [NOW + HOUR * hours for hours in range(9)]
    offsets = [HOUR if one < datetime(2026, 3, 29, 1, tzinfo=UTC) else 2 * HOUR for one in utc]
    local = [line(one, offset) for one, offset in zip(utc, offsets, strict=True)]
    assert times(*local, zone="Europe/Berlin") == utc
    framed = times(*(f"{one:%Y-%m-%dT%H:%M:%S.1Z} stderr F {text}" for one, text in zip(utc, local, strict=True)))
    assert framed == utc


def test_lines_that_a_shipper_delivers_late_move_no_offset() -> None:
    utc = [NOW + timedelta(seconds=seconds) for seconds in range(6)]
    stamps = [utc[0], *(one + HOUR + timedelta(minutes=5) for one in utc[1:])]
    assert (
        times(*(f"{at:%Y-%m-%dT%H:%M:%SZ} {line(one, 0 * HOUR)}" for at, one in zip(stamps, utc, strict=True))) == utc
    )


@pytest.mark.parametrize(("hours", "live", "expected"), [(8, False, 8), (8, True, 8), (-5, True, -5), (-5, False, 0)])
def test_a_live_log_is_compared_with_the_clock(hours: int, live: bool, expected: int) -> None:
    """A file's own time shows only that a line is not of the future: the file may be a copy."""
    session = Session(nanos(NOW))
    log = (line(NOW - HOUR, hours * HOUR, "old") + "\n" + line(NOW, hours * HOUR) + "\n").encode()
    session.log("s.log", log, nanos(NOW), ClockReading(log, nanos(NOW), live))
    assert session.newest == min(nanos(NOW), nanos(NOW + (hours - expected) * HOUR))
    assert bool(session.line_counts["log"].notes[NO_ZONE]) == (expected == 0)
    session.expire(nanos(NOW))
    kept = json.loads(json.dumps(session.checkpoint(nanos(NOW))))
    again = Session(nanos(NOW), kept)
    again.log("s.log", log, nanos(NOW))
    assert again.newest == session.newest


def test_pods_that_are_listed_give_the_offset_of_a_log_that_was_written_before() -> None:
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{NOW - HOUR:%Y-%m-%dT%H:%M:%SZ}"}
    meta = {"name": "web-0", "namespace": "shop", "uid": "u"}
    pod = {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "n"}, "status": {"conditions": [bound]}}
    session = Session(nanos(NOW))
    session.listed({"kind": "PodList", "items": [pod]}, nanos(NOW))
    log = f"{line(NOW - HOUR, -5 * HOUR)}\n".encode()
    session.log("s.log", log, nanos(NOW), ClockReading(log, nanos(NOW), live=False))
    assert session.newest == nanos(NOW - HOUR)


def test_failures_that_repeat_give_no_offset_that_only_they_fit() -> None:
    since = nanos(NOW - 3 * HOUR)
    seen = [PodSeen(since, "ADDED", "u", "shop/a", since, "", "", "Unschedulable", "no", since, "", (), None)]
    lines = [LineMeaning(since + at * 300 * 10**9, Kind.NO_FIT, "", "shop/a", {}) for at in range(1, 60)]
    assert offsets_by_watch(lines, seen) == []


@pytest.mark.parametrize("arguments", [["--pods", str(DATA / "pods.jsonl")], ["--timezone", "+02:00"]])
def test_the_watch_or_an_option_gives_the_offset(arguments: list[str], tmp_path: Path) -> None:
    report = reconstruct("--log", str(DATA / "plain.log"), "--year", "2024", *arguments)
    assert report["attempts"] == {"Success": 1, "Unschedulable": 1}
    assert report["read"]["log"]["notes"] == ({"times at UTC+02:00": 2} if "--pods" in arguments else {})


def test_the_runtime_gives_the_offset_and_without_any_there_is_a_warning() -> None:
    assert reconstruct("--log", str(DATA / "cri.log"))["read"]["log"]["notes"] == {"times at UTC+02:00": 2}
    assert reconstruct("--log", str(DATA / "plain.log"))["read"]["log"]["notes"] == {NO_ZONE: 2}


def test_a_zone_that_does_not_exist_is_refused() -> None:
    result = CliRunner().invoke(main, ["reconstruct", "--log", str(DATA / "cri.log"), "--timezone", "Europe/Berln"])
    assert (result.exit_code, "is not a time zone" in result.output) == (2, True)


@pytest.mark.parametrize("more", [["--watch", str(DATA / "pods.jsonl")], ["--timezone", "Europe/Berlin"], []])
def test_why_derives_the_offset_or_takes_it_or_says_that_it_reads_utc(more: list[str]) -> None:
    asked = ["why", "pod", "default/nobody", "--log", str(DATA / "plain.log"), *more]
    told = CliRunner().invoke(main, asked, catch_exceptions=False).stderr
    assert ("T10:00:05" in told) == bool(more)
    assert ("read as UTC, which --timezone changes" in told) != bool(more)


def reconstruct(*arguments: str) -> Any:
    return json.loads(CliRunner().invoke(main, ["reconstruct", "--json", *arguments], catch_exceptions=False).stdout)
