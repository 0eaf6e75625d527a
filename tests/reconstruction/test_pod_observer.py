"""What a watch brings as spans: each transition once, with the best time there is, and the same ids whoever watches."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard

from podtrail.otlp import Group, SpanView, split
from podtrail.reconstruction.pod_observer import PodObserver

RECORDINGS = Path(__file__).parents[1] / "data/recordings/node"
SECOND = 1_000_000_000
CREATED = 1_795_367_613 * SECOND  # 2026-11-22T17:13:33Z


def events(recording: str) -> list[tuple[str, dict[str, Any], int]]:
    raw = zstandard.ZstdDecompressor().stream_reader((RECORDINGS / recording / "pods.jsonl.zst").read_bytes()).read()
    lines = [json.loads(line) for line in raw.splitlines()]
    return [(each["event"]["type"], each["event"]["object"], int(each["arrivalUnixNano"])) for each in lines]


def spans(groups: Iterable[Group]) -> list[SpanView]:
    return [SpanView(raw) for group in groups for raw in split(group.spans)]


def pod(**changes: Mapping[str, Any]) -> dict[str, Any]:
    whole: dict[str, dict[str, Any]] = {
        "metadata": {
            "namespace": "default",
            "name": "web-0",
            "uid": "1f3c0a52-0000-4000-8000-000000000001",
            "creationTimestamp": "2026-11-22T17:13:33Z",
        },
        "spec": {},
        "status": {},
    }
    for part, values in changes.items():
        whole[part] |= values
    return whole


@pytest.mark.parametrize("recording", ["podtrail", "stock"])
def test_the_story_of_a_real_node_is_told(recording: str) -> None:
    observer = PodObserver()
    told: dict[str, list[SpanView]] = defaultdict(list)
    for event in events(recording):
        for span in spans(observer.take(*event)):
            told[str(span.attributes["k8s.pod.name"]).split("-7")[0]].append(span)
    kinds = {name: [span.attributes["podtrail.pod.transition"] for span in each] for name, each in told.items()}
    assert len(observer) == 0
    for each in kinds.values():
        assert (each[0], each[-1]) == ("created", "deleted")
        assert {"scheduled", "initialized", "waiting", "deleting"} <= set(each)
    assert {name for name, each in kinds.items() if "ready" not in each} == {"no-image", "unready"}
    waits = {span.attributes.get("podtrail.pod.reason") for span in told["no-image"] if "waiting" in span.name}
    assert waits == {"ContainerCreating", "ErrImagePull", "ImagePullBackOff"}
    codes = [
        span.attributes["k8s.container.exit_code"] for span in told["crash"] if span.name == "container terminated"
    ]
    assert codes == [3, 3, 3]
    ids = [span.trace_id for each in told.values() for span in each]
    assert len(set(ids)) == len(ids)


def test_a_list_after_a_restart_tells_the_same_spans_again_and_nothing_twice() -> None:
    came = events("podtrail")
    whole = PodObserver()
    first = {(span.trace_id, span.span_id) for event in came for span in spans(whole.take(*event))}
    for cut in range(0, len(came), 7):
        objects = {each["metadata"]["uid"]: (change, each) for change, each, _ in came[:cut]}
        listed = [each for change, each in objects.values() if change != "DELETED"]
        again = PodObserver()
        now = came[cut][2]
        told = [span for each in listed for span in spans(again.take("LISTED", each, now))]
        assert {(span.trace_id, span.span_id) for span in told} <= first
        assert [span for each in listed for span in spans(again.take("MODIFIED", each, now))] == []


def test_a_transition_seen_within_its_second_has_the_time_at_which_it_was_seen() -> None:
    (live,) = spans(PodObserver().take("ADDED", pod(), CREATED + SECOND // 2))
    assert (live.start, live.end) == (CREATED + SECOND // 2, CREATED + SECOND // 2)
    assert "podtrail.time.resolution_ns" not in live.attributes
    assert str(live.attributes["podtrail.inferred"]).startswith("['start: when it was seen, within the second")


@pytest.mark.parametrize(("change", "after"), [("LISTED", SECOND // 2), ("ADDED", 2 * SECOND), ("ADDED", -SECOND)])
def test_any_other_has_the_whole_second_of_the_object_and_says_so(change: str, after: int) -> None:
    (listed,) = spans(PodObserver().take(change, pod(), CREATED + after))
    assert (listed.start, listed.attributes["podtrail.time.resolution_ns"]) == (CREATED, SECOND)
    assert "podtrail.inferred" not in listed.attributes


def condition(kind: str, status: str, reason: str = "", message: str = "", second: int = 33) -> dict[str, Any]:
    told = {"type": kind, "status": status, "reason": reason, "message": message}
    return {"conditions": [told | {"lastTransitionTime": f"2026-11-22T17:13:{second}Z"}]}


def test_gates_are_reported_while_they_hold_a_pod_and_once_they_are_gone() -> None:
    observer = PodObserver()
    held = pod(spec={"schedulingGates": [{"name": "example.com/quota"}, {"name": "example.com/licence"}]})
    created, first = spans(observer.take("ADDED", held, CREATED + 1))
    assert (created.name, first.name) == ("pod created", "pod unscheduled")
    assert first.attributes["podtrail.pod.reason"] == "SchedulingGated"
    assert first.attributes["k8s.pod.scheduling_gates"] == ["example.com/quota", "example.com/licence"]
    one = pod(spec={"schedulingGates": [{"name": "example.com/licence"}]})
    (left,) = spans(observer.take("MODIFIED", one, CREATED + SECOND))
    assert (left.start, left.attributes["k8s.pod.scheduling_gates"]) == (CREATED + SECOND, ["example.com/licence"])
    stale = pod(status=condition("PodScheduled", "False", "SchedulingGated"))
    (gated,) = spans(observer.take("MODIFIED", stale, CREATED + 3 * SECOND))
    assert (gated.name, gated.start, gated.end) == ("pod gated", CREATED, CREATED + 3 * SECOND)
    assert gated.attributes["k8s.pod.scheduling_gates"] == ["example.com/licence"]


def test_why_a_pod_has_no_node_is_read_from_its_condition() -> None:
    observer = PodObserver()
    seen = []
    for at, reason in enumerate(("NotReadyForScheduling", "Unschedulable", "Unschedulable", ""), start=40):
        status = condition("PodScheduled", "False" if reason else "True", reason, f"message {at}")
        seen += spans(observer.take("MODIFIED", pod(status=status), CREATED + at * SECOND))
    told = [(span.attributes["podtrail.pod.transition"], span.attributes.get("podtrail.pod.message")) for span in seen]
    assert told == [
        ("created", None),
        ("unscheduled", "message 40"),
        ("gated", "message 40"),
        ("unscheduled", "message 41"),
        ("scheduled", "message 43"),
    ]


@pytest.mark.parametrize("change", ["MODIFIED", "LISTED"])
def test_a_pod_that_stops_being_ready_says_so_also_when_it_is_listed_later(change: str) -> None:
    started = {"name": "main", "state": {"running": {"startedAt": "2026-11-22T17:13:35Z"}}}
    before, after = (condition("Ready", "False", second=second) for second in (34, 59))
    observer = PodObserver()
    first = spans(observer.take(change, pod(status={"containerStatuses": [started]} | before), CREATED + 60 * SECOND))
    assert "pod not ready" not in [span.name for span in first]
    (lost,) = spans(observer.take(change, pod(status={"containerStatuses": [started]} | after), CREATED + 60 * SECOND))
    assert (lost.name, lost.start) == ("pod not ready", CREATED + 26 * SECOND)


def test_one_that_went_while_nobody_watched_is_deleted_when_it_was_missed() -> None:
    observer = PodObserver()
    observer.take("ADDED", pod(), CREATED)
    skeleton = {"metadata": pod()["metadata"]}
    (gone,) = spans(observer.take("MISSED", skeleton, CREATED + 60 * SECOND))
    assert (gone.name, gone.start) == ("pod deleted", CREATED + 60 * SECOND)
    assert gone.attributes["podtrail.inferred"] == ["start: when it was missed; it went while nobody watched"]
    assert len(observer) == 0


def test_the_creation_links_to_what_its_annotation_claims_and_says_that_it_is_a_claim() -> None:
    claim = {"tracing.k8s.io/traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    (created,) = spans(PodObserver().take("ADDED", pod(metadata={"annotations": claim}), CREATED))
    (link,) = created.links
    assert link.trace_id.hex() == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert link.attributes["podtrail.link.trusted"] is False


def test_what_restarts_between_two_looks_is_told_by_its_last_state() -> None:
    status = {
        "name": "main",
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
        "lastState": {
            "terminated": {
                "exitCode": 137,
                "reason": "OOMKilled",
                "startedAt": "2026-11-22T17:13:40Z",
                "finishedAt": "2026-11-22T17:13:41Z",
            }
        },
    }
    told = spans(PodObserver().take("LISTED", pod(status={"containerStatuses": [status]}), CREATED))
    assert [span.name for span in told] == [
        "pod created",
        "container started",
        "container terminated",
        "container waiting",
    ]
    assert (told[2].status.code, told[2].status.message) == (2, "OOMKilled")
    assert told[2].attributes["k8s.container.restart_count"] == 1


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"metadata": None},
        {"metadata": {"uid": 3, "name": "a", "namespace": "b"}},
        {"metadata": {"uid": "u", "name": "a", "namespace": "b"}, "spec": [], "status": {"conditions": "no"}},
        {
            "metadata": {"uid": "u", "name": "a", "namespace": "b"},
            "status": {"containerStatuses": [None, {"state": 1}]},
        },
    ],
)
def test_objects_of_another_shape_harm_nothing(broken: dict[str, Any]) -> None:
    assert all(span.attributes["k8s.pod.uid"] == "u" for span in spans(PodObserver().take("ADDED", broken, CREATED)))
