"""Attempts whose spans podtrail-kube-scheduler exports itself are not rebuilt from its log or from a watch as well."""

import json
from pathlib import Path

import pytest

from podtrail.otlp import SpanView, split
from podtrail.reconstruction import Session
from podtrail.reconstruction.vocabulary import MESSAGES, Kind

SECOND = 1_000_000_000
START = 1_795_259_520 * SECOND  # 11:12:00 on 21 November 2026
STARTS = '"Starting Kubernetes Scheduler" version="v1.37.2"'
BOUND = '"Successfully bound pod to node" pod="default/%s" node="n" evaluatedNodes=1 feasibleNodes=1'
FAILED = '"Unable to schedule pod; no fit; waiting" pod="default/%s" err="0/1 nodes are available: 1 Insufficient cpu."'
TRACED = '"Scheduling attempt was traced" pod="default/%s" result="%s" traceID="0af7651916cd43dd8448eb211c80319c"'
RATE = '"Scheduling attempts are traced" samplingRatePerMillion=%d'
OFF = '"Tracing failed and is off until the scheduler restarts" err="panic: x"'
SOME, ALL = RATE % 1_000, RATE % 1_000_000


def line(second: int, text: str) -> bytes:
    return f"I1121 11:12:{second:02}.000000    4385 reporting.go:1] {text}\n".encode()


def condition(uid: str, name: str, version: int, second: int) -> dict[str, object]:
    failed = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "lastTransitionTime": f"2026-11-21T11:12:{second:02}Z",
    }
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    metadata["creationTimestamp"] = "2026-11-21T11:12:00Z"
    status = {"phase": "Pending", "conditions": [failed] if version > 1 else []}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {}, "status": status}


def rebuilt(lines: list[str], *, with_spans: bool = False, watched: dict[int, str] | None = None) -> list[str]:
    """Return the Pods of the attempts that are told; `watched` has Pods that fail by a watch alone, by second."""
    session = Session(START, with_spans=with_spans)
    groups = []
    for name in (watched or {}).values():
        session.watched({"type": "ADDED", "object": condition(f"uid-{name}", name, 1, 0)}, START)
    for second, text in enumerate(lines, 1):
        now = START + second * SECOND
        session.log("kube-scheduler.log", line(second, text), now)
        if failed := (watched or {}).get(second):
            session.watched({"type": "MODIFIED", "object": condition(f"uid-{failed}", failed, 2, second)}, now + 1_000)
        groups += session.expire(now)
    groups += session.drain(START + 60 * SECOND)
    roots = [SpanView(raw) for group in groups for raw in split(group.spans)]
    return sorted(str(root.attributes["k8s.pod.name"]) for root in roots if root.name == "SchedulePod")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param([STARTS, BOUND % "a"], ["a"], id="no tracing"),
        pytest.param([ALL, STARTS, BOUND % "a", FAILED % "b"], [], id="all are traced"),
        pytest.param([BOUND % "a", ALL, STARTS, BOUND % "b"], ["a"], id="all are traced from then on"),
        pytest.param([ALL, STARTS, BOUND % "a", STARTS, BOUND % "b"], ["b"], id="the next process traces nothing"),
        pytest.param([ALL, STARTS, BOUND % "a", ALL, STARTS, BOUND % "b"], [], id="the next process traces, too"),
        pytest.param([ALL, STARTS, BOUND % "a", OFF, BOUND % "b"], ["b"], id="tracing failed"),
        pytest.param([SOME, STARTS, BOUND % "a", TRACED % ("b", "Success"), BOUND % "b"], ["a"], id="a part is traced"),
        pytest.param([TRACED % ("a", "Success"), BOUND % "a", BOUND % "b"], ["b"], id="a log without its beginning"),
        pytest.param([SOME, STARTS, TRACED % ("a", "Unschedulable"), BOUND % "a"], ["a"], id="another result"),
        pytest.param(
            [SOME, STARTS, TRACED % ("a", "Unschedulable"), FAILED % "a", FAILED % "a"], ["a"], id="one of two attempts"
        ),
    ],
)
def test_attempts_with_spans_of_their_own_are_left_out(lines: list[str], told: list[str]) -> None:
    assert rebuilt(lines) == told
    every = [one for one in lines if one.startswith(('"Succ', '"Unable'))]
    assert len(rebuilt(lines, with_spans=True)) == len(every)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param([SOME, STARTS, "x", TRACED % ("w", "Unschedulable"), "x"], [], id="named"),
        pytest.param([SOME, STARTS, "x", "x", "x"], ["w"], id="not named"),
        pytest.param([ALL, STARTS, "x", "x", "x"], [], id="all are traced"),
        pytest.param([STARTS, "x", "x", "x", "x"], ["w"], id="no tracing"),
    ],
)
def test_attempts_that_only_a_watch_shows_are_left_out_likewise(lines: list[str], told: list[str]) -> None:
    assert rebuilt(lines, watched={4: "w"}) == told


def test_the_lines_are_those_that_the_instrumentation_in_go_writes() -> None:
    table = json.loads((Path(__file__).parents[2] / "instrumentation/vocabulary.json").read_text())["log"]
    kinds = {"tracing is on": Kind.SPANS_ON, "tracing is off": Kind.SPANS_OFF, "an attempt was traced": Kind.HAS_SPANS}
    assert {name: MESSAGES[text.encode()] for name, text in table.items()} == kinds
