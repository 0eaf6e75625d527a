"""`podtrail reconstruct` on what a real kube-scheduler left behind, of other Pods than those of the recordings."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.otlp import SpanView, split
from podtrail.reconstruction import read_attempts
from podtrail.recording import Record, read_recording

pytestmark = pytest.mark.control_plane
DEADLINE = 600.0
PREEMPTORS = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Scene:
    """Pods of all fates in a namespace, and what the scheduler counted of them."""

    def __init__(self, plane: Any, namespace: str) -> None:
        self.plane = plane
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        plane.api.namespace(namespace)
        for zone in ("a", "b"):
            for number in range(2):
                plane.api.node(f"{zone}{number}", {"cpu": "2"}, labels={"zone": zone})
        plane.api.node("gpu", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
        plane.api.create(PREEMPTORS, {"metadata": {"name": "high"}, "value": 1000})

    def create(self, name: str, cpu: str = "100m", port: int | None = None, **spec: Any) -> None:
        container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        if port:
            container["ports"] = [{"containerPort": port, "hostPort": port}]
        self.plane.api.create(self.pods, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}})

    def await_pods(self, done: Callable[[Mapping[str, Any]], bool], *names: str) -> None:
        """Wait until all of these Pods are as they should be."""
        until = time.monotonic() + DEADLINE
        while not all(done(self.plane.api.get(f"{self.pods}/{name}")) for name in names):
            assert time.monotonic() < until, names
            time.sleep(0.05)

    def counted(self) -> Counter[str]:
        page = self.plane.scheduler_get("/metrics").encode().splitlines()
        counts: Counter[str] = Counter()
        for one in read_attempts(page):
            counts[one.result] += one.attempts
        return +counts

    def play(self) -> None:
        """Let Pods be bound, refused, preempted and freed."""
        bound = [f"web-{number}" for number in range(12)]
        for name in bound:
            self.create(name)
        self.create("filler-b0", "1500m", nodeSelector={"kubernetes.io/hostname": "b0"})
        self.await_pods(is_bound, *bound, "filler-b0")
        self.create("wide", "64")
        self.create("tape", nodeSelector={"disk": "tape"})
        self.create("port-1", port=8080, nodeSelector={"kubernetes.io/hostname": "a0"})
        self.await_pods(is_bound, "port-1")
        self.create("port-2", port=8080, nodeSelector={"kubernetes.io/hostname": "a0"})
        self.create("gpu-job", tolerations=[{"operator": "Exists"}], nodeSelector={"kubernetes.io/hostname": "gpu"})
        self.create("boss", "1800m", priorityClassName="high", nodeSelector={"kubernetes.io/hostname": "b0"})
        self.await_pods(is_refused, "wide", "tape", "port-2", "boss")
        self.await_pods(is_bound, "gpu-job")


def is_bound(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName"))


def is_refused(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)


def settled(scene: Scene, log: Path) -> tuple[Counter[str], bytes]:
    """Return what the scheduler counted, and its log up to the same moment."""
    until = time.monotonic() + DEADLINE
    while True:
        before, text, after = scene.counted(), log.read_bytes(), scene.counted()
        if before == after and text.endswith(b"\n"):
            return before, text
        assert time.monotonic() < until, (before, after)


def events_of(plane: Any, pods: Iterable[Mapping[str, Any]]) -> Any:
    """Return the events, once there is one of each of these Pods: the scheduler writes them behind its attempts."""
    until, uids = time.monotonic() + DEADLINE, {pod["metadata"]["uid"] for pod in pods}
    while True:
        events = plane.api.get("/apis/events.k8s.io/v1/events")
        missing = uids - {event["regarding"].get("uid") for event in events["items"]}
        if not missing:
            return events
        assert time.monotonic() < until, missing
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("form", "level"), [("text", 2), ("text", 4), ("json", 3), ("text", 10)], ids=["v2", "v4", "json-v3", "v10"]
)
def test_every_attempt_of_a_real_scheduler_is_rebuilt(
    start_control_plane: Callable[..., Any], tmp_path: Path, form: str, level: int
) -> None:
    plane = start_control_plane()
    try:
        log = plane.start_scheduler(flags=(f"-v={level}", f"--logging-format={form}"))
        scene = Scene(plane, "shop")
        scene.play()
        counted, text = settled(scene, log)
        pods = {pod["metadata"]["name"]: pod for pod in plane.api.get(scene.pods)["items"]}
        events = events_of(plane, pods.values())
    finally:
        plane.stop()
    (tmp_path / "kube-scheduler.log").write_bytes(text)
    (tmp_path / "events.jsonl").write_text(json.dumps(events))
    listed = {"arrivalUnixNano": str(time.time_ns()), "list": {"kind": "PodList", "items": [*pods.values()]}}
    (tmp_path / "pods.jsonl").write_text(json.dumps(listed))
    output = tmp_path / "attempts.otlp"
    given = [f"--{name}={tmp_path / name}.jsonl" for name in ("pods", "events")]
    arguments = ["reconstruct", f"--log={tmp_path / 'kube-scheduler.log'}", *given, f"--output={output}", "--json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert Counter(json.loads(done.stdout)["attempts"]) == counted
    records = [record for record in read_recording(output) if isinstance(record, Record)]
    spans = [SpanView(raw) for record in records for group in record.intake.groups for raw in split(group.spans)]
    roots = [span for span in spans if span.name == "SchedulePod"]
    for name, pod in pods.items():
        of_pod = [span for span in roots if span.attributes["k8s.pod.name"] == name]
        assert {span.attributes.get("k8s.pod.uid") for span in of_pod} == {pod["metadata"]["uid"]}
        if is_bound(pod):
            last = max(of_pod, key=lambda span: span.end)
            assert last.attributes["scheduler.selected_node"] == pod["spec"]["nodeName"]
        else:
            assert {span.attributes["scheduler.result"] for span in of_pod} == {"Unschedulable"}
            condition = next(one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled")
            assert condition["message"] in {span.status.message for span in of_pod}
