"""podtrail-kube-scheduler while nodes go, the API server is killed, or the leader: attempts, counters and times agree.

On the newest minor release; the others differ in four functions.
"""

import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.instrumentation.go.harness import ALL, Cluster, counted, roots, told, until
from tests.scheduler.collector import Collector, attributes

pytestmark = [pytest.mark.control_plane, pytest.mark.parametrize("binary", ["1.37"], indirect=True)]
PODS = 200
KEY = "tracing.k8s.io/traceparent"
CLIENT = {"clientConnection": {"qps": 5000, "burst": 5000}}


def assert_whole(spans: Sequence[Span]) -> None:
    """Asserts that each trace has one root and each other span its parent: all that was started has ended."""
    by_trace: dict[bytes, list[Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span)
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    for trace in by_trace.values():
        ids = Counter(span.span_id for span in trace)
        assert set(ids.values()) == {1}
        assert [span.name for span in trace if not span.parent_span_id] == ["SchedulePod"]
        assert {span.parent_span_id for span in trace} - {b""} <= ids.keys()


def settled(control_plane: Any, collector: Collector, host: str = "kube-scheduler") -> None:
    """Returns once spans tell as many attempts, by result, as the scheduler's counter."""

    def counts() -> Counter[str]:
        return counted(control_plane.scheduler_get("/metrics", scheduler=host))

    until(lambda: (told(roots(collector)), counts()), lambda both: both[0] == both[1])


def assert_once(attempts: Sequence[Span]) -> None:
    ids = Counter((attributes(root)["k8s.pod.uid"], attributes(root)["scheduler.attempts"]) for root in attempts)
    assert set(ids.values()) == {1}


def held_by_tracing(control_plane: Any) -> int:
    """Bytes on the heap that the instrumentation and OpenTelemetry's SDK allocated, after a collection."""
    profile = control_plane.scheduler_get("/debug/pprof/heap?gc=1&debug=1")
    entries = re.findall(r"^\d+: (\d+) \[(.*?)(?=^\d+: |\Z)", profile, re.MULTILINE | re.DOTALL)
    # Frames stand from the inside to the outside: the scheduler, which is called through hooks, allocates for itself.
    owner = re.compile(r"\t(podtrail/instrumentation|go\.opentelemetry\.io|k8s\.io|google\.golang\.org)")
    found = [(int(size), owner.search(stack)) for size, stack in entries]
    return sum(size for size, of in found if of and of[1] in ("podtrail/instrumentation", "go.opentelemetry.io"))


def test_while_nodes_are_deleted_each_attempt_is_told_once_at_the_times_of_the_log_and_then_forgotten(
    control_plane: Any,
    cluster: Cluster,
    start: Callable[..., Path],
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.nodes(10, cpu="50")
    monkeypatch.setenv("GODEBUG", "memprofilerate=1")  # by default one of 512 KiB of allocations is in the profile
    log = start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}, "-v=10", **CLIENT)
    before = log.stat().st_size
    for number in range(PODS):
        cluster.create(f"pod-{number}", cpu="500m" if number % 5 else "100")  # every fifth fits nowhere
        if number % 40 == 20:
            cluster.api.delete(f"/api/v1/nodes/{cluster.namespace}-{number // 40}")
    for number in range(PODS):
        if number % 5:
            cluster.bound(f"pod-{number}")
    settled(control_plane, collector)
    assert_once(roots(collector))
    assert_whole(collector.spans)
    with log.open(encoding="utf-8") as read:
        read.seek(before)
        assert_times_agree(read.read(), cluster.namespace, collector.spans)
    first = held_by_tracing(control_plane)
    for number in range(PODS):
        cluster.create(f"later-{number}", cpu="10m")
    for number in range(PODS):
        cluster.bound(f"later-{number}")
    settled(control_plane, collector)
    for number in range(PODS):
        cluster.api.delete(f"{cluster.pods}/later-{number}")
    # The Pods that fit nowhere are tried again as others leave: for a while there are spans of these attempts.
    until(lambda: held_by_tracing(control_plane), lambda held: held - first < 100 * PODS)


def assert_times_agree(log: str, namespace: str, spans: Sequence[Span]) -> None:
    """Asserts that attempts begin, bind and end when klog says so: mostly within 1 ms."""
    names = {root.trace_id: str(attributes(root)["k8s.pod.name"]) for root in spans if root.name == "SchedulePod"}
    year = datetime.now(UTC).year
    said: dict[tuple[str, str], list[int]] = {}
    line = re.compile(rf'^I(\d{{4}} [\d:.]+) .*?\] "([^"]+)".*? pod="{re.escape(namespace)}/([^"]+)"', re.MULTILINE)
    for found in line.finditer(log):
        moment = datetime.strptime(f"{year}{found[1]}", "%Y%m%d %H:%M:%S.%f").astimezone()
        said.setdefault((found[2], found[3]), []).append(int(moment.timestamp() * 1e6))
    apart: dict[str, list[float]] = {}
    for text, span_name, of in (
        ("Attempting to schedule pod", "schedulingCycle", "start_time_unix_nano"),
        ("Attempting to bind pod to node", "plugin: DefaultBinder", "start_time_unix_nano"),
        ("Successfully bound pod to node", "bind", "end_time_unix_nano"),
    ):
        for span in spans:
            times = said.get((text, names[span.trace_id]), []) if span.name == span_name else []
            if times:
                apart.setdefault(text, []).append(min(abs(getattr(span, of) / 1e3 - each) for each in times))
    assert len(apart) == 3
    for text, differences in apart.items():
        assert len(differences) > PODS // 2
        assert statistics.median(differences) < 1_000, text


def test_a_killed_api_server_leaves_no_attempt_out_and_none_twice(
    mortal_control_plane: Any, cluster: Cluster, start: Callable[..., Path], collector: Collector
) -> None:
    cluster.nodes(10, cpu="50")
    slow = {"clientConnection": {"qps": 40, "burst": 20}}  # many attempts are on their way when it is killed
    start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}, **slow)
    for number in range(PODS):
        cluster.create(f"pod-{number}")
    until(lambda: len(roots(collector)) > PODS // 4)
    mortal_control_plane.stop_one("kube-apiserver", kill=True)
    until(lambda: told(roots(collector))["error"])
    mortal_control_plane.start_apiserver()
    for number in range(PODS):
        cluster.bound(f"pod-{number}")
    settled(mortal_control_plane, collector)
    assert_once(roots(collector))
    assert_whole(collector.spans)


def test_after_a_killed_leader_the_next_one_tells_its_attempts_and_no_other(
    control_plane: Any, cluster: Cluster, start: Callable[..., Path], collector: Collector
) -> None:
    cluster.nodes(10, cpu="50")
    times = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
    lease = {"leaderElect": True, **times}
    tracing = {"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}
    start(tracing, replica="a", leaderElection=lease, **CLIENT)
    cluster.create("first")
    cluster.bound("first")
    start(tracing, replica="b", leaderElection=lease, **CLIENT)
    settled(control_plane, collector, "kube-scheduler-a")
    names = [f"pod-{number}" for number in range(PODS)]
    for number, name in enumerate(names):
        cluster.create(name)
        if number == PODS // 2:
            control_plane.stop_one("kube-scheduler-a", kill=True)
    pods = {pod["metadata"]["uid"]: pod for pod in map(cluster.bound, ["first", *names])}

    def instances() -> list[str]:
        return list(dict.fromkeys(resource["service.instance.id"] for resource, _ in collector.taken))

    first, second = until(instances, lambda found: len(found) == 2)

    def by(instance: str) -> list[Span]:
        return [
            span for resource, spans in collector.taken if resource["service.instance.id"] == instance for span in spans
        ]

    def attempts(instance: str) -> list[Span]:
        return [span for span in by(instance) if span.name == "SchedulePod"]

    def counts() -> Counter[str]:
        return counted(control_plane.scheduler_get("/metrics", scheduler="kube-scheduler-b"))

    until(lambda: (told(attempts(second)), counts()), lambda both: both[0] == both[1])
    assert_once(attempts(first))
    assert_once(attempts(second))
    assert_whole(by(second))
    chosen = {
        attributes(root)["k8s.pod.uid"]: attributes(root)["scheduler.selected_node"]
        for root in roots(collector)
        if attributes(root)["scheduler.result"] == "Success"
    }
    assert {uid: pods[str(uid)]["spec"]["nodeName"] for uid in chosen} == chosen
    # What the killed one had not sent is lost: such Pods name an attempt that the next one did not make.
    known = {root.trace_id.hex() for root in attempts(second)}
    untold = [pod["metadata"] for uid, pod in pods.items() if uid not in chosen]
    assert not [each for each in untold if each["annotations"][KEY][3:35] in known]
    assert not {each["name"] for each in untold} & {"first", *names[PODS // 2 + 1 :]}
