"""Rubbish, other logs, gaps, repeats and lies: counted, never fatal, never an attempt that was not."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.otlp import SpanView, split
from podtrail.reconstruction import trace
from tests.sizes import large

MIB = 1 << 20
BOUND = (
    b'I1121 11:12:07.%06d    4385 schedule_one.go:483] "Successfully bound pod to node" '
    b'pod="%s" node="node-00" evaluatedNodes=1 feasibleNodes=1'
)
BEGUN = b'I1121 11:12:%02d.%06d    4385 schedule_one.go:117] "Attempting to schedule pod" pod="%s"'


def key(one: Any) -> tuple[str, str, int]:
    return (one.identity.pod, one.draft.result, one.draft.end)


@given(st.lists(st.binary(max_size=300), max_size=30))
def test_rubbish_gives_no_attempt_and_every_line_is_counted(runs: Any, rubbish: list[bytes]) -> None:
    result = runs.rebuild([rubbish], [rubbish])
    assert not result.attempts
    assert result.log.lines == result.watch.lines == len(rubbish)


@settings(max_examples=large(40, 100))
@given(st.data())
def test_what_is_left_of_a_log_with_gaps_and_rubbish_is_true(runs: Any, data: st.DataObject) -> None:
    lines = runs.lines("v5-json.log")
    kept = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=400, unique=True).map(sorted))
    rubbish = data.draw(st.binary(max_size=60).filter(lambda text: b"\n" not in text))
    true = {key(one) for one in runs.of("v5-json", "log").attempts}
    result = runs.rebuild([[part for at in kept for part in (lines[at], rubbish)]])
    assert {key(one) for one in result.attempts if one.draft.result} <= true


@settings(max_examples=large(30, 100))
@given(st.integers(1, 3000), st.sampled_from(["v2-text.log", "v5-json.log"]))
def test_lines_cut_off_anywhere_never_fail(runs: Any, longest: int, name: str) -> None:
    result = runs.rebuild([[line[:longest] for line in runs.lines(name)[:400]]])
    assert result.log.lines == 400


def test_a_line_of_ten_megabytes_is_counted_and_costs_nothing_else(runs: Any) -> None:
    lines = [
        BOUND % (1, b"default/a"),
        b'I1121 11:12:07.000002    4385 a.go:1] "' + b"x" * 10 * MIB,
        BOUND % (3, b"default/b"),
    ]
    result = runs.rebuild([lines])
    assert [one.identity.pod for one in result.attempts] == ["default/a", "default/b"]
    assert result.log.unknown == {"longer than 1 MiB": 1}


def test_the_log_of_another_component_gives_no_attempt(runs: Any) -> None:
    lines = [
        b'I1121 11:12:07.000001       1 kubelet.go:2391] "SyncLoop ADD" source="api" pods=["default/web-0"]',
        b'E1121 11:12:07.000002       1 pod_workers.go:1301] "Error syncing pod" err="no" pod="default/web-0"',
        b'I1121 11:12:07.000003       1 a.go:2] Trace[12]: "List" (21-Nov-2026 11:12:07.000) (total time: 600ms):',
        b"Trace[12]: [600.1ms] [600.1ms] END",
        b'time="2026-11-21T11:12:07Z" level=info msg="starting signal loop" namespace=k8s.io',
    ]
    result = runs.rebuild([lines])
    assert not result.attempts
    assert result.log.unknown.total() == 1


def test_two_schedulers_in_one_file_are_told_apart(runs: Any) -> None:
    text, structured = runs.lines("v2-text.log"), runs.lines("v5-json.log")
    mixed = [line for pair in zip(text, structured, strict=False) for line in pair]
    mixed += text[len(structured) :] + structured[len(text) :]
    result = runs.rebuild([mixed])
    expected = Counter(map(key, runs.of("v2-text", "log").attempts + runs.of("v5-json", "log").attempts))
    assert Counter(map(key, result.attempts)) == expected


def test_time_that_goes_back_loses_no_attempt(runs: Any) -> None:
    lines = runs.lines("v5-json.log")
    result = runs.rebuild([lines[700:] + lines[:700]])
    true = Counter(map(key, runs.of("v5-json", "log").attempts))
    found = Counter(key(one) for one in result.attempts if one.draft.result)
    assert not found - true
    assert sum((true - found).values()) <= 1  # whose lines the cut has parted
    assert result.log.notes["times that go back"] == 1


def test_a_watch_that_repeats_itself_adds_nothing(runs: Any) -> None:
    pods, events = runs.lines("v2-text.pods.jsonl"), runs.lines("v2-text.events.jsonl")
    twice = [line for line in events for _ in range(2)]
    result = runs.rebuild([], [[line for line in pods for _ in range(2)], twice, events])
    once = runs.of("v2-text", "pods", "events")
    assert Counter(map(key, result.attempts)) == Counter(map(key, once.attempts))


def test_a_pod_that_was_bound_before_the_watch_began_gives_no_attempt(runs: Any) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "old", "namespace": "default", "uid": "u", "creationTimestamp": "2026-11-21T10:00:00Z"},
        "spec": {"nodeName": "n", "schedulerName": "default-scheduler"},
        "status": {"conditions": [{"type": "PodScheduled", "status": "True"}]},
    }
    told = {"arrivalUnixNano": "1795259525850942186", "list": {"kind": "PodList", "items": [pod]}}
    again = {"arrivalUnixNano": "1795259525850942187", "event": {"type": "MODIFIED", "object": pod}}
    assert not runs.rebuild([], [[json.dumps(one).encode() for one in (told, again)]]).attempts


@pytest.mark.parametrize(
    "name", [b"default/../../etc", b"Default/Web", b"default/" + b"a" * 300, b"a b/c", b"\\x1b[31m/x", b"x"]
)
def test_a_line_about_a_pod_of_a_hostile_name_is_counted_and_not_believed(runs: Any, name: bytes) -> None:
    result = runs.rebuild([[BOUND % (1, name)]])
    assert not result.attempts
    assert result.log.unknown == {"about a Pod of no valid name": 1}


def test_a_message_that_looks_like_another_line_stays_a_message(runs: Any) -> None:
    forged = 'x\nI1121 11:12:07.000002 4385 a.go:1] "Successfully bound pod to node" pod="default/evil" node="n"'
    line = (
        b'E1121 11:12:07.000001    4385 schedule_one.go:1198] "Error scheduling pod; retrying" err=%s pod="default/a"'
    )
    (one,) = runs.rebuild([[line % json.dumps(forged).encode()]]).attempts
    assert (one.identity.pod, one.draft.message) == ("default/a", forged)


def test_pods_of_one_name_are_told_apart_by_uid_and_time(runs: Any) -> None:
    def pod(uid: str, change: str, at: int) -> bytes:
        meta = {"name": "db-0", "namespace": "default", "uid": uid, "creationTimestamp": "2026-11-21T11:12:00Z"}
        event = {"type": change, "object": {"kind": "Pod", "metadata": meta, "spec": {"schedulerName": "s"}}}
        return json.dumps({"arrivalUnixNano": str(1_795_259_520_000_000_000 + at * 1_000_000), "event": event}).encode()

    watch = [pod("one", "ADDED", 0), pod("one", "DELETED", 2000), pod("two", "ADDED", 3000)]
    logged = []
    for second in (1, 4):
        logged += [
            BEGUN % (second, 100, b"default/db-0"),
            b'I1121 11:12:%02d.000900    4385 a.go:1] "Unable to schedule pod; no fit; waiting" '
            b'pod="default/db-0" err="0/3 nodes are available: 3 Insufficient cpu."' % second,
        ]
    result = runs.rebuild([logged], [watch])
    assert [(one.identity.uid, one.identity.number) for one in result.attempts] == [("one", 1), ("two", 1)]


def test_attempts_that_never_end_are_let_go_one_by_one(runs: Any) -> None:
    log = [BEGUN % (7, number % 1_000_000, b"default/pod-%d" % number) for number in range(9_500)]
    result = runs.rebuild([log])
    assert len(result.attempts) == 9_500
    assert not any(one.draft.result for one in result.attempts)
    assert result.outcome.notes["open attempts let go: too many"] == 9_500 - 8_192


@pytest.mark.parametrize("words", ["Leaderelection lost", "leaderelection lost", "Failed to renew lease"])
def test_a_scheduler_that_is_no_longer_leader_ends_what_it_had_begun(runs: Any, words: str) -> None:
    lost = b'E1121 11:12:09.000000    4385 server.go:337] "%s"' % words.encode()
    other = BEGUN.replace(b"   4385", b"   9999") % (7, 1, b"default/b")
    cut, goes_on = runs.rebuild([[BEGUN % (7, 0, b"default/a"), other, lost]]).attempts
    assert (cut.identity.pod, cut.draft.result) == ("default/a", "")
    assert cut.draft.inferred["end"] == "the scheduler was no longer leader"
    assert goes_on.draft.inferred["end"] == "the log ends before the attempt does"


def test_an_attempt_that_a_restart_cut_short_says_so_on_its_root(runs: Any) -> None:
    start = b'I1121 11:12:09.000000    4385 server.go:187] "Starting Kubernetes Scheduler" version="v1.37.1"'
    (cut,) = runs.rebuild([[BEGUN % (7, 0, b"default/a"), start]]).attempts
    root = SpanView(split(trace(cut).spans)[-1])
    assert "scheduler.result" not in root.attributes
    inferred = root.attributes["podtrail.inferred"]
    assert isinstance(inferred, list)
    assert {"end: the scheduler started anew", "result: not known"} <= set(map(str, inferred))


def test_a_scheduler_that_starts_anew_ends_what_it_had_begun(runs: Any) -> None:
    start = b'I1121 11:12:09.000000    4385 server.go:187] "Starting Kubernetes Scheduler" version="v1.37.1"'
    again = BEGUN % (10, 0, b"default/a")
    bound = BOUND.replace(b":07.%06d", b":10.%06d") % (5, b"default/a")
    cut, whole = runs.rebuild([[BEGUN % (7, 0, b"default/a"), start, again, bound]]).attempts
    assert (cut.draft.result, cut.draft.inferred["end"]) == ("", "the scheduler started anew")
    assert (whole.draft.result, whole.identity.number) == ("Success", 2)


ANY = st.text(max_size=60) | st.sampled_from(
    ["\ud800", "\x00", "100% of it", "x" * 5000, "\u202e", "0/1 nodes are available: "]
)
NANOS = st.integers(0, 1 << 64) | st.integers(1_795_259_500_000_000_000, 1_795_259_600_000_000_000)
MESSAGES_OF = [
    "Attempting to schedule pod",
    "Successfully bound pod to node",
    "Unable to schedule pod; no fit; waiting",
]
TRACE = 'Trace[1]: "Scheduling" namespace:default,name:a (21-Nov-2026 11:12:07.000) (total time: 999999999999ms):'
ENDED = '\nTrace[1]: ---"Computing predicates done" 999999999999ms (x)\nTrace[1]: [9999999999h0m] [1s] END'


@settings(max_examples=large(50, 100))
@given(
    st.lists(st.tuples(NANOS, st.sampled_from([*MESSAGES_OF, TRACE + ENDED]), ANY, ANY), max_size=8),
    st.lists(st.tuples(NANOS, ANY, ANY, st.sampled_from(["Scheduled", "FailedScheduling", "Preempted"])), max_size=8),
    st.lists(st.tuples(NANOS, ANY, ANY, st.sampled_from(["ADDED", "MODIFIED", "DELETED"])), max_size=8),
)
def test_whatever_text_and_time_a_source_has_can_be_written(
    runs: Any,
    logged: list[tuple[int, str, str, str]],
    events: list[tuple[int, str, str, str]],
    pods: list[tuple[int, str, str, str]],
) -> None:
    log = [
        {"ts": at / 1e6, "msg": message, "err": err, "node": node, "pod": {"name": "a", "namespace": "default"}}
        for at, message, err, node in logged
    ]
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    watched: list[dict[str, object]] = [
        {
            "kind": "Event",
            "reason": reason,
            "note": note,
            "reportingController": profile,
            "regarding": about | {"uid": profile},
            "eventTime": "2026-11-21T11:12:07.5Z",
            "arrival": at,
        }
        for at, note, profile, reason in events
    ]
    watched += [
        {
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "default", "uid": uid or "u"},
            "spec": {"nodeName": node, "schedulerName": node},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}]},
            "arrival": at,
            "change": change,
        }
        for at, uid, node, change in pods
    ]
    told = [
        {"arrivalUnixNano": str(one.pop("arrival")), "event": {"type": one.pop("change", "ADDED"), "object": one}}
        for one in watched
    ]
    result = runs.rebuild(
        [[json.dumps(line, separators=(",", ":")).encode() for line in log]],
        [[json.dumps(line).encode() for line in told]],
    )
    assert all(trace(one).span_count for one in result.attempts)
    ids = [trace(one).trace_id for one in result.attempts]
    assert len(ids) == len(set(ids))


MISSING = "ends of attempts whose beginning is not in the log: lines may be missing"


@pytest.mark.parametrize("run", ["v10-text", "v5-json"])
def test_a_gap_in_the_log_is_reported_and_a_whole_one_reports_none(runs: Any, run: str) -> None:
    lines = runs.lines(f"{run}.log")
    begun = [at for at, line in enumerate(lines) if b"Attempting to schedule pod" in line]
    gap = [line for at, line in enumerate(lines) if at not in begun[5:9]]
    assert MISSING not in runs.of(run, "log").outcome.notes
    result = runs.rebuild([gap])
    assert result.outcome.notes[MISSING] == 4
    assert len(result.attempts) == sum(runs.counted(run).values())
