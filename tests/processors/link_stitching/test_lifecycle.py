"""A Pod's life as one trace, told of the recordings of a real node: who was tried, started, failed and ended, when."""

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard

from podtrail.otlp import write_request
from podtrail.reconstruction.pod_observer import PodObserver
from podtrail.recording import Damage
from podtrail.recording.reader import read_recording
from podtrail.testing import ExportedSpan, Run, replay
from tests.sizes import large

RECORDINGS = Path(__file__).parents[2] / "data/recordings/node"
RECORDED = ["podtrail", "stock"][: large(1, 2)]
"""The stock scheduler's has no spans of attempts; test_recorded_story.py joins both."""
CONFIG = """
receivers: {{otlp: {{protocols: {{grpc: {{}}}}}}}}
processors:
  tail_sampling: {{decision_wait: 5s, policies: [{policy}]}}
  link_stitching: {{mode: lifecycle}}
exporters: {{debug: {{}}}}
service:
  pipelines:
    traces: {{receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}}
"""
KEEP_ALL = CONFIG.format(policy="{name: all, type: always_sample}")
KEEP_NONE = CONFIG.format(policy="{name: none, type: latency, latency: {threshold_ms: 100000000}}")
PATIENT = KEEP_ALL.replace("mode: lifecycle", "mode: lifecycle, lifecycle: {wait: 2m}")
Spans = Mapping[str, Sequence[ExportedSpan]]
"""By uid."""


def lives(run: Run) -> Spans:
    found: dict[str, list[ExportedSpan]] = defaultdict(list)
    for spans in run.exported.values():
        for each in spans:
            if each.resource == {"service.name": "podtrail"} and each.span.name != "podtrail.amendment":
                found[str(each.span.attributes["k8s.pod.uid"])].append(each)
    return found


@cache
def told(recording: str) -> Run:
    return replay(KEEP_ALL, RECORDINGS / recording / "spans.otlp.zst")


@cache
def pods(recording: str) -> Mapping[str, str]:
    """Names of the Pods that were there, by uid."""
    raw = zstandard.ZstdDecompressor().stream_reader((RECORDINGS / recording / "pods.jsonl.zst").read_bytes()).read()
    objects = [json.loads(line)["event"]["object"]["metadata"] for line in raw.splitlines()]
    return {each["uid"]: each["name"] for each in objects}


def life_of(name: str, recording: str = "podtrail") -> Sequence[ExportedSpan]:
    (uid,) = [uid for uid, each in pods(recording).items() if each == name]
    return lives(told(recording))[uid]


def parts(spans: Sequence[ExportedSpan]) -> list[str]:
    """The names of parts, by when they began."""
    children = [each.span for each in spans if each.span.parent_span_id]
    return [span.name for span in sorted(children, key=lambda span: (span.start, span.end))]


def ids(spans: Spans) -> set[tuple[str, bytes, bytes, bytes]]:
    return {
        (each.span.name, each.span.trace_id, each.span.span_id, each.span.parent_span_id)
        for life in spans.values()
        for each in life
    }


@pytest.mark.parametrize("recording", RECORDED)
def test_every_pod_of_the_story_has_one_root_and_one_tree(recording: str) -> None:
    found = lives(told(recording))
    assert set(found) == set(pods(recording))
    for uid, spans in found.items():
        (root,) = [each.span for each in spans if each.span.name == "PodLifecycle"]
        assert (root.trace_id.hex(), root.parent_span_id) == (uid.replace("-", ""), b"")
        assert root.attributes["k8s.pod.name"] == pods(recording)[uid]
        assert {each.span.parent_span_id for each in spans} == {b"", root.span_id}
        assert {each.span.trace_id for each in spans} == {root.trace_id}
        assert len({each.span.span_id for each in spans}) == len(spans)


@pytest.mark.parametrize("recording", RECORDED)
def test_a_part_links_to_the_span_that_it_stands_for(recording: str) -> None:
    originals = {
        each.span.trace_id + each.span.span_id: each.span.name
        for spans in told(recording).exported.values()
        for each in spans
    }
    seen: dict[str, set[str]] = defaultdict(set)
    for life in lives(told(recording)).values():
        for each in life:
            if each.span.parent_span_id:
                (link,) = each.span.links
                assert link.attributes["podtrail.link.type"] == "original"
                assert link.attributes["podtrail.link.resolved"] is True
                assert link.attributes["podtrail.link.evidence"]
                seen[each.span.name].add(originals[link.trace_id + link.span_id].rpartition("/")[2])
    assert seen["sandbox"] == {"RunPodSandbox"}
    assert seen["image pull"] == {"PullImage"}
    assert seen["container created"] == {"CreateContainer"}
    assert seen["container started"] == {"StartContainer"}
    assert seen["failed start"] == {"syncPod"}
    assert seen["terminated"] == {"syncTerminatedPod"}
    assert seen["attempt"] == ({"SchedulePod"} if recording == "podtrail" else set())


def test_a_pod_that_waits_has_numbered_attempts_with_who_said_no_and_waits_between_them() -> None:
    life = life_of("waits")
    started = ["sandbox", "container created", "container started"]
    tried = ["created", "queued", "attempt", "queued", "attempt", "bound"]
    assert parts(life) == [*tried, *started, "terminating", "terminated"]
    first, second = [each.span for each in life if each.span.name == "attempt"]
    assert (first.attributes["podtrail.attempt.number"], second.attributes["podtrail.attempt.number"]) == (1, 2)
    assert first.attributes["scheduler.result"] == "Unschedulable"
    assert first.attributes["podtrail.attempt.rejections"] == ["NodeResourcesFit: 1 node (Insufficient cpu)"]
    assert first.status.message.startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert second.attributes["scheduler.result"] == "Success"
    waited = max((each.span for each in life if each.span.name == "queued"), key=lambda span: span.end - span.start)
    assert (waited.start, waited.end) == (first.end, second.start)
    (root,) = [each.span for each in life if each.span.name == "PodLifecycle"]
    assert root.attributes["podtrail.lifecycle.attempts"] == 2
    assert root.attributes["k8s.node.name"] == "node-1"


def test_failed_starts_are_told_as_the_kubelet_says() -> None:
    pulled = [each.span for each in life_of("no-image") if each.span.name in ("failed start", "image pull")]
    assert {span.attributes.get("podtrail.pod.reason") for span in pulled} == {None, "ErrImagePull", "ImagePullBackOff"}
    assert {span.attributes.get("container.image.name") for span in pulled} == {None, "127.0.0.1:1/missing:1"}
    assert all(span.status.code == 2 and "missing" in span.status.message for span in pulled)
    crash = life_of("crash")
    (back_off,) = [each.span for each in crash if each.span.name == "failed start"]
    assert back_off.attributes["podtrail.pod.reason"] == "CrashLoopBackOff"
    assert back_off.attributes["k8s.container.name"] == "main"
    starts = [each.span for each in crash if each.span.name == "container created"]
    assert [span.attributes["k8s.container.restart_count"] for span in starts] == [0, 1, 2]


def test_what_was_sampled_out_is_told_from_verdicts_and_its_links_say_so() -> None:
    run = replay(KEEP_NONE, RECORDINGS / "podtrail" / "spans.otlp.zst")
    assert ids(lives(run)) == ids(lives(told("podtrail")))
    links = [link for life in lives(run).values() for each in life for link in each.span.links]
    assert {link.attributes["podtrail.link.target"] for link in links} == {"dropped"}


def requests(recording: str) -> list[tuple[int, Any]]:
    records = [
        each for each in read_recording(RECORDINGS / recording / "spans.otlp.zst") if not isinstance(each, Damage)
    ]
    return [(each.arrival, write_request(each.intake.groups)) for each in records]


def test_ids_are_the_same_whoever_tells_and_in_whatever_order_it_came() -> None:
    whole = ids(lives(told("podtrail")))
    came = requests("podtrail")
    shuffled = [request for _, request in came]
    random.Random(3).shuffle(shuffled)
    anyhow = [(arrival, request) for (arrival, _), request in zip(came, shuffled, strict=True)]
    assert ids(lives(replay(PATIENT, anyhow))) == whole
    assert ids(lives(replay(KEEP_ALL, anyhow))) <= whole
    assert ids(lives(replay(KEEP_ALL, [each for each in came for _ in range(2)]))) == whole


def test_a_restart_in_the_middle_tells_the_same_spans_but_for_a_creation_that_nobody_remembers() -> None:
    came, whole = requests("podtrail"), ids(lives(told("podtrail")))
    cut = len(came) * 3 // 4
    halves = [ids(lives(replay(KEEP_ALL, half))) for half in (came[:cut], came[cut:])]
    assert halves[0] | halves[1] <= whole
    assert [name for name, *_ in whole - halves[0] - halves[1]] in ([], ["created"])


@cache
def watched(recording: str) -> list[tuple[int, Any]]:
    """What a watch of the Pods tells beside what components sent, in the order in which it came."""
    observer = PodObserver()
    raw = zstandard.ZstdDecompressor().stream_reader((RECORDINGS / recording / "pods.jsonl.zst").read_bytes()).read()
    seen = []
    for line in raw.splitlines():
        told = json.loads(line)
        arrival = int(told["arrivalUnixNano"])
        if groups := observer.take(told["event"]["type"], told["event"]["object"], arrival):
            seen.append((arrival, write_request(groups)))
    return sorted([*requests(recording), *seen], key=lambda request: request[0])


@cache
def told_with_a_watch(recording: str) -> Run:
    return replay(KEEP_ALL, watched(recording))


def watched_life(name: str) -> Sequence[ExportedSpan]:
    (uid,) = [uid for uid, each in pods("podtrail").items() if each == name]
    return lives(told_with_a_watch("podtrail"))[uid]


def test_with_a_watch_a_life_goes_from_creation_over_ready_to_deletion() -> None:
    life = watched_life("waits")
    assert parts(life) == [
        *("created", "queued", "attempt", "queued", "attempt", "bound"),
        *("sandbox", "container created", "container started", "ready"),
        *("container exited", "finished"),
        *("terminating", "terminated", "deleted"),
    ]
    by_name = {each.span.name: each.span for each in life}
    assert by_name["ready"].start == by_name["container started"].end
    assert by_name["created"].links[0].attributes["podtrail.link.evidence"]


@pytest.mark.parametrize("recording", RECORDED)
def test_with_a_watch_those_are_ready_that_were(recording: str) -> None:
    found = lives(told_with_a_watch(recording))
    assert set(found) == set(pods(recording))
    ready = {pods(recording)[uid].split("-7")[0] for uid, life in found.items() if "ready" in parts(life)}
    names = {name.split("-7")[0] for name in pods(recording).values()}
    assert names - ready == {"no-image", "unready"}
    for life in found.values():
        (root,) = [each.span for each in life if each.span.name == "PodLifecycle"]
        assert {"created", "queued", "bound", "deleted"} <= set(parts(life))
        assert min(each.span.start for each in life) == root.start
    (crash,) = [life for uid, life in found.items() if pods(recording)[uid] == "crash"]
    codes = [each.span.attributes["k8s.container.exit_code"] for each in crash if each.span.name == "container exited"]
    assert codes == [3, 3, 3]


def test_with_a_watch_ids_are_the_same_in_any_order_that_is_waited_for() -> None:
    came = watched("podtrail")
    whole = ids(lives(told_with_a_watch("podtrail")))
    for seed in range(large(1, 3)):
        shuffled = [request for _, request in came]
        random.Random(seed).shuffle(shuffled)
        anyhow = [(arrival, request) for (arrival, _), request in zip(came, shuffled, strict=True)]
        assert ids(lives(replay(PATIENT, anyhow))) == whole
