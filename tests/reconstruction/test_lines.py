"""One line at a time: versions, framings, values."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.reconstruction import LineCounts, SchedulerLog, split_lines
from podtrail.reconstruction.scheduler_log import LineMeaning
from podtrail.reconstruction.vocabulary import Kind

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler" / "ages-details"
NEAR = 1_795_259_525_000_000_000
MS = 1_000_000


def read(*lines: str, near: int = NEAR) -> list[LineMeaning]:
    reader = SchedulerLog("log", near, LineCounts())
    return [*reader.read([line.encode() for line in lines]), *reader.end()]


OLD = 'I1121 06:04:54.407601    9552 scheduler.go:604] pod default/ok is bound successfully on node "n1", '


@pytest.mark.parametrize(
    ("line", "kind", "values"),
    [
        (OLD + "3 nodes evaluated, 2 nodes were found feasible.", Kind.BOUND, {"node": "n1", "feasibleNodes": "2"}),
        ("I1121 06:04:54.407601    9552 scheduler.go:572] Attempting to schedule pod: default/ok", Kind.BEGUN, {}),
        (
            (
                "I1121 06:04:54.407601    9552 factory.go:449] Unable to schedule default/ok: no fit: 0/2 nodes are "
                "available: 2 Insufficient cpu.; waiting"
            ),
            Kind.NO_FIT,
            {"err": "0/2 nodes are available: 2 Insufficient cpu."},
        ),
        (
            "E1121 06:04:54.407601    9552 factory.go:469] Error scheduling default/ok: no space; retrying",
            Kind.FAILED,
            {"err": "no space"},
        ),
        (
            "I1121 06:04:54.407601    9552 default_binder.go:51] Attempting to bind default/ok to n1",
            Kind.BINDING,
            {"node": "n1"},
        ),
        (
            (
                'I1121 06:04:54.407601    9552 scheduler.go:592] "Successfully bound pod to node" pod="default/ok" '
                'node="n1" evaluatedNodes=1 feasibleNodes=1'
            ),
            Kind.BOUND,
            {"node": "n1", "evaluatedNodes": "1"},
        ),
        (
            (
                'I1121 06:04:54.407601       1 scheduling_queue.go:1137] "Pod moved to an internal scheduling queue" '
                'logger="x" pod="default/ok" event="ScheduleAttemptFailure" queue="Backoff" schedulingCycle=6 hint=1 '
                'unschedulable plugins={"NodeAffinity":{},"NodeResourcesFit":{}}'
            ),
            Kind.QUEUED,
            {"queue": "Backoff", "unschedulable plugins": '{"NodeAffinity":{},"NodeResourcesFit":{}}'},
        ),
        (
            (
                "I1121 06:04:54.407601 1 f.go:3] Unable to schedule default/ok: possibly due to node not found: no n; "
                "waiting"
            ),
            Kind.FAILED,
            {"err": "no n"},
        ),
        (
            (
                'I1121 06:04:54.407601 1 s.go:990] "Unable to schedule pod, possibly due to node not found; waiting" '
                'pod="default/ok" err="binding rejected"'
            ),
            Kind.FAILED,
            {"err": "binding rejected"},
        ),
        ("I1121 06:04:54.407601 1 e.go:173] add event for unscheduled pod default/ok", Kind.ADDED, {}),
        ("I1121 06:04:54.407601 1 e.go:209] delete event for unscheduled pod default/ok", Kind.REMOVED, {}),
        ("I1121 06:04:54.407601 1 e.go:230] add event for scheduled pod default/ok ", Kind.PLACED, {}),
        (
            (
                'I1121 06:04:54.407601 1 q.go:4] "Status after running PreEnqueue plugin" pod="default/ok" plugin="P" '
                'status="no"'
            ),
            Kind.HELD,
            {"plugin": "P", "status": "no"},
        ),
        (
            (
                'I1121 06:04:54.407601 1 q.go:1] "Entity moved to an internal scheduling queue, because it is gated" '
                'type="pod" entity="default/ok" event="PodAdd" queue="Unschedulable"'
            ),
            Kind.HELD,
            {"queue": "Unschedulable"},
        ),
    ],
)
def test_lines_of_all_ages_mean_the_same(line: str, kind: Kind, values: dict[str, str]) -> None:
    (told,) = read(line)
    assert (told.kind, told.pod) == (kind, "default/ok")
    assert values.items() <= told.values.items()


@pytest.mark.parametrize(
    "line",
    [
        (
            b'I1121 06:04:54.500000 1 q.go:1] "Checking events for in-flight pod" pod="a/b" '
            b'unschedulablePlugins={"Mine":{}} inFlightEventsSize=0'
        ),
        (
            b'I1121 06:04:54.500000 1 q.go:1] "Pod moved to an internal scheduling queue" pod="a/b" '
            b'event="ScheduleAttemptFailure" queue="Backoff" hint=1 unschedulable plugins={"Mine":{}}'
        ),
        (
            b'{"ts":1795241094500.0,"caller":"q.go:1","msg":"Checking events for in-flight pod","v":5,'
            b'"pod":{"name":"b","namespace":"a"},"unschedulablePlugins":{"Mine":{}}}'
        ),
    ],
    ids=["1.28, -v=5", "1.29, -v=3", "JSON"],
)
def test_the_plugins_that_refused_are_named_by_the_queue(runs: Any, line: bytes) -> None:
    refused = (
        b'I1121 06:04:54.407601 1 s.go:990] "Unable to schedule pod; no fit; waiting" pod="a/b" '
        b'err="0/1 nodes are available: 1 Insufficient cpu."'
    )
    (one,) = runs.rebuild([[refused, line]]).attempts
    assert one.draft.asked == {"Mine"}


def test_scores_of_1_20_are_those_of_the_pod_that_is_tried(runs: Any) -> None:
    log = (DATA / "1.20-scores.log").read_bytes().splitlines()
    result = runs.rebuild([log])
    (one,) = result.attempts
    assert one.draft.scores is not None
    assert one.draft.scores.totals == {"n1": 90, "n2": 180}
    assert one.draft.scores.plugins["NodeResourcesLeastAllocated"] == {"n1": 90, "n2": 80}
    assert one.draft.wait == 200 * MS
    assert not result.log.unknown


def test_a_permit_of_1_20_has_no_namespace(runs: Any) -> None:
    begun = b"I1121 06:04:54.000000 1 scheduler.go:452] Attempting to schedule pod: default/nginx"
    waits = b'I1121 06:04:54.100000 1 framework.go:933] pod "nginx" waiting on permit'
    other = b'I1121 06:04:54.100000 1 framework.go:933] pod "other" waiting on permit'
    result = runs.rebuild([[begun, other, waits]])
    (one,) = result.attempts
    assert (one.draft.waiting_at, result.log.unknown.total()) == (one.draft.start + 100 * MS, 1)


def test_each_age_starts_and_panics_in_its_own_words(runs: Any) -> None:
    lines = (
        b"I1121 06:04:54.407601 1 server.go:138] Starting Kubernetes Scheduler version v1.20.15",
        b'I1121 06:04:55.407601 1 server.go:135] "Starting Kubernetes Scheduler version" version="v1.22.17"',
        b'I1121 06:04:56.407601 1 server.go:147] "Starting Kubernetes Scheduler" version="v1.24.17"',
        b'E1121 06:04:57.407601 1 runtime.go:79] Observed a panic: "boom" (boom)',
        b"goroutine 1 [running]:",
        b"k8s.io/kubernetes/pkg/scheduler.(*Scheduler).scheduleOne(0xc0)",
        b"\t/usr/local/go/src/runtime/panic.go:884 +0x212",
        b"panic: boom [recovered]",
        b"",
        b"fatal error: all goroutines are asleep - deadlock!",
    )
    result = runs.rebuild([lines])
    assert result.outcome.notes == {"starts of the scheduler": 3, Kind.PANICKED: 1}
    assert (result.log.used, result.log.continued, result.log.unknown) == (4, 6, {})


def test_a_value_of_several_lines_is_put_together() -> None:
    told, following = read(
        'E1121 11:12:29.262844    4385 schedule_one.go:1198] "Error scheduling pod; retrying" err=<',
        '\trunning "x"',
        "\t\tdeeper",
        ' > logger="UnhandledError" pod="default/a"',
        'I1121 11:12:30.000000    4385 schedule_one.go:117] "Attempting to schedule pod" pod="default/b"',
    )
    assert (told.pod, told.values["err"]) == ("default/a", 'running "x"\n\tdeeper')
    assert following.pod == "default/b"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_message_survives_quoting(message: str) -> None:
    quoted = json.dumps(message, ensure_ascii=False).replace("\n", "\\n").replace("\r", "\\r")
    line = f'E1121 11:12:29.262844 4385 s.go:1] "Error scheduling pod; retrying" err={quoted} pod="default/a"'
    (told,) = read(line)
    assert (told.pod, told.values["err"]) == ("default/a", message)


def test_of_a_key_that_stands_twice_in_json_the_innermost_counts() -> None:
    (told,) = read(
        '{"ts":1795260024579.5713,"caller":"queue/active_queue.go:414","msg":"Entity moved to an internal scheduling '
        'queue","pod":{"name":"a","namespace":"x"},"v":5,"type":"pod","pod":{"name":"b","namespace":"x"},'
        '"event":"AssignedPodDelete","queue":"Active"}'
    )
    assert (told.pod, told.time) == ("x/b", 1_795_260_024_579_571_300)


LINE = 'I1121 11:12:07.005373    4385 schedule_one.go:117] "Attempting to schedule pod" pod="default/a"'


def test_the_year_turns_within_a_log() -> None:
    new_year = int(datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 10**9
    before = LINE.replace("1121 11:12:07", "1231 23:59:58")
    after = LINE.replace("1121 11:12:07", "0101 00:00:01")
    first, second = read(before, after, near=new_year)
    assert second.time - first.time == 3 * 10**9


@pytest.mark.parametrize(
    ("first", "second", "years"),
    [
        ("1231 23:59:58", "0101 00:00:01", [2025, 2026]),
        ("0111 10:00:00", "0511 10:00:00", [2026, 2026]),  # a log of many months
        ("1122 01:00:00", "1122 13:00:00", [2026, 2026]),  # in a zone far east
        ("0229 10:00:00", "0229 11:00:00", [2024, 2024]),
        ("0301 10:00:00", "0228 11:00:00", [2026, 2026]),
    ],
)
def test_the_first_line_is_not_later_than_when_the_log_was_read(first: str, second: str, years: list[int]) -> None:
    reader = SchedulerLog("log", NEAR, LineCounts(), over=True)
    told = reader.read(LINE.replace("1121 11:12:07", stamp).encode() for stamp in (first, second))
    assert [datetime.fromtimestamp(one.time // 10**9, UTC).year for one in told] == years


BLOCK = (
    (
        'I1121 06:04:54.407601    9552 trace.go:205] Trace[389521860]: "Scheduling" namespace:default,name:ok2 '
        "(21-Nov-2026 06:04:54.252) (total time: 154ms):"
    ),
    'Trace[389521860]: ---"Snapshotting scheduler cache and node infos done" 4ms (06:04:00.256)',
    'Trace[389521860]: ["Filtering" plugin:x 100ms (06:04:00.256)',
    'Trace[389521860]:  ---"a step within" 90ms (06:04:00.350)]',
    'Trace[389521860]: ---"Computing predicates done" 150ms (06:04:00.406)',
    "Trace[389521860]: [154.683192ms] [154.683192ms] END",
)


def test_a_trace_with_another_in_it_gives_its_own_steps() -> None:
    (told,) = read(*BLOCK)
    assert told.block is not None
    assert (told.kind, told.pod, told.block.took) == (Kind.TRACE, "default/ok2", 154_683_192)
    steps = [("Snapshotting scheduler cache and node infos done", 4 * MS), ("Computing predicates done", 150 * MS)]
    assert told.block.steps == steps


def test_a_trace_in_json_is_read_from_its_message() -> None:
    message = "\n".join([BLOCK[0].partition("] ")[2], *BLOCK[1:]])
    (told,) = read(json.dumps({"ts": 1795260021732.796, "msg": message, "v": 0}, separators=(",", ":")))
    assert told.block is not None
    assert len(told.block.steps) == 2


def test_traces_that_stand_mixed_are_told_apart() -> None:
    other = [line.replace("389521860", "7").replace("ok2", "ok3") for line in BLOCK]
    told = read(*(line for pair in zip(BLOCK, other, strict=True) for line in pair))
    assert [one.pod for one in told] == ["default/ok2", "default/ok3"]


@given(st.lists(st.binary(max_size=40)), st.integers(1, 20))
def test_lines_are_the_same_however_the_file_is_cut(pieces: list[bytes], longest: int) -> None:
    pieces = [b"klog", *pieces]  # what begins otherwise may be UTF-16
    whole = b"".join(pieces).replace(b"\0", b"")
    lines = whole.split(b"\n")
    expected = [line[: longest + 1] for line in (lines if lines[-1] else lines[:-1])]
    found = list(split_lines(pieces, longest))
    assert [line.rstrip(b"\r") for line in found] == [line.rstrip(b"\r") for line in expected]


def test_every_line_is_counted_once(runs: Any) -> None:
    for run in ("v2-text", "v10-text", "v5-json"):
        counts = runs.of(run, "log").log
        assert counts.lines == counts.used + counts.other + counts.continued + counts.unknown.total()
