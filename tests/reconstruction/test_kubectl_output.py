"""What kubectl prints is read as it is: lists and single objects, pretty, on one line and as YAML, and its watches."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from podtrail.reconstruction import EventSeen, LineCounts, PodSeen, WatchReader, split_lines
from podtrail.reconstruction.watch import Seen

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"
SECOND = 1_000_000_000
NOTE = "0/3 nodes are available: 3 Insufficient cpu."
ABOUT = {"kind": "Pod", "name": "web-0", "namespace": "default", "uid": "u-1"}
META = {"name": "web-0.1", "namespace": "default"}
OLD = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": META,
    "involvedObject": ABOUT,
    "reason": "FailedScheduling",
    "message": NOTE,
    "eventTime": None,
    "firstTimestamp": "2024-05-01T10:00:00Z",
    "lastTimestamp": "2024-05-01T10:12:00Z",
    "count": 7,
    "source": {"component": "default-scheduler"},
}
NEW = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": META,
    "regarding": ABOUT,
    "reason": "Scheduled",
    "note": "Successfully assigned default/web-0 to n1",
    "eventTime": "2024-05-01T10:13:00.123456Z",
    "reportingController": "default-scheduler",
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "default", "uid": "u-1", "creationTimestamp": "2024-05-01T09:59:00Z"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "args": ["a: b\n- items:\n"]}]},
    "status": {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": NOTE,
                "lastTransitionTime": "2024-05-01T10:00:00Z",
            }
        ]
    },
}
ITEMS: Sequence[Mapping[str, Any]] = (NEW, POD, OLD)


def listed(kind: str = "List") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "items": json.loads(json.dumps(ITEMS)),
        "kind": kind,
        "metadata": {"resourceVersion": ""},
    }


def without_kinds() -> dict[str, Any]:
    return {"kind": "x", "items": [{key: value for key, value in item.items() if key != "kind"} for item in ITEMS]}


FORMS: dict[str, Callable[[], str]] = {
    "-o json": lambda: json.dumps(listed(), indent=4),
    "-o json | jq -c .": lambda: json.dumps(listed()),
    "-o json | jq -c '.items[]'": lambda: "\n".join(map(json.dumps, ITEMS)),
    "-o json | jq '.items[]'": lambda: "\n".join(json.dumps(item, indent=2) for item in ITEMS),
    "-o json | jq .items": lambda: json.dumps(ITEMS, indent=2),
    "-o yaml": lambda: yaml.safe_dump(listed()),
    "-o yaml | yq": lambda: (
        "items:\n" + "".join(f"  {line}\n" for line in yaml.safe_dump(listed()["items"]).splitlines())
    ),
    "one after the other, -o yaml": lambda: "---\n".join(yaml.safe_dump(item) for item in listed()["items"]),
    "--raw": lambda: json.dumps(without_kinds()),
    "--raw | jq .": lambda: json.dumps(without_kinds(), indent=2),
    "one item a line": lambda: '{"kind":"List","items":[\n' + ",\n".join(map(json.dumps, ITEMS)) + "]}",
    "-w --output-watch-events -o json": lambda: "\n".join(
        json.dumps({"type": "ADDED", "object": item}, indent=4) for item in ITEMS
    ),
}
ENCODINGS = ["utf-8", "utf-16"]


def read(text: str, encoding: str = "utf-8") -> tuple[list[Seen], LineCounts]:
    counts = LineCounts()
    seen = [*WatchReader(counts).read(split_lines([text.encode(encoding)]), 1 << 20)]
    assert counts.lines == counts.used + counts.other + counts.continued + counts.unknown.total()
    return seen, counts


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", FORMS)
def test_objects_are_read_in_every_form_by_the_times_in_them(form: str, encoding: str) -> None:
    seen, counts = read(FORMS[form](), encoding)
    assert not counts.unknown
    pod, failed, scheduled = seen
    assert isinstance(pod, PodSeen)
    assert (pod.pod, pod.uid, pod.message) == ("default/web-0", "u-1", NOTE)
    assert isinstance(failed, EventSeen)
    assert (failed.reason, failed.note, failed.profile, failed.repeated) == (
        *("FailedScheduling", NOTE, "default-scheduler"),
        True,
    )
    assert isinstance(scheduled, EventSeen)
    assert (failed.resolution, scheduled.resolution) == (SECOND, 1000)
    assert scheduled.at - failed.at == 60 * SECOND + 123_456_000


def test_a_pod_that_kubectl_prints_as_unschedulable_was_tried(runs: Any) -> None:
    pod = json.dumps(POD, indent=4).encode().splitlines()
    (one,) = runs.rebuild([], [pod]).attempts
    assert (one.draft.result, one.draft.message, one.draft.end) == ("Unschedulable", NOTE, 1_714_557_600 * SECOND)
    event = {**OLD, "lastTimestamp": OLD["firstTimestamp"]}
    assert len(runs.rebuild([], [pod, [json.dumps(event).encode()]]).attempts) == 1


@pytest.mark.parametrize("text", ["NAME   READY\nweb-0  1/1\n", "{\n", "- a\n- b\n", "null\n", '{"kind": "Status"}\n'])
def test_what_is_no_object_is_counted(text: str) -> None:
    seen, counts = read(text)
    assert not seen
    assert counts.unknown or counts.other or counts.continued


def test_events_in_whole_seconds_make_no_attempts_of_those_in_the_log(runs: Any) -> None:
    folder = DATA / "whole-seconds"
    names = ("pods.jsonl", "events.jsonl")
    result = runs.rebuild(
        [(folder / "s.log").read_bytes().splitlines()], [(folder / name).read_bytes().splitlines() for name in names]
    )
    results = [one.draft.result for one in result.attempts]
    assert (results.count("Success"), results.count("Unschedulable"), len(results)) == (13, 12, 25)
