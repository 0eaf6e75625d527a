"""How Pods end, by what a watch shows of them, and by the requests that asked for it."""

from typing import Any

import pytest

from podtrail.otlp import Event, Value, encode_span, frame
from podtrail.reconstruction.pod_observer import PodObserver
from podtrail.story import Library, PodStory, plain, waits_for
from podtrail.story.time_to_start import time_to_start
from podtrail.testing.attempts import START, MadeAttempt
from tests.story.test_node_spans import span

SECOND = 1_000_000_000
DAY = "2026-11-22T17:"
UID = "1f3c0a52-0000-4000-8000-000000000009"
CREATED = 1_795_367_580 * SECOND  # 17:13:00
PATH = "/api/v1/namespaces/{:namespace}/pods/{:name}"


def condition(kind: str, status: str, at: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": f"{DAY}{at}Z"}


def running(at: str, restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "main", "restartCount": restarts, "state": {"running": {"startedAt": f"{DAY}{at}Z"}}, **more}


def exited(at: str, code: int, reason: str, restarts: int = 0) -> dict[str, Any]:
    ended = {"exitCode": code, "reason": reason, "startedAt": f"{DAY}13:05Z", "finishedAt": f"{DAY}{at}Z"}
    return {"name": "main", "restartCount": restarts, "state": {"terminated": ended}}


RUNNING = {
    "phase": "Running",
    "conditions": [condition("PodScheduled", "True", "13:01"), condition("Ready", "True", "13:06")],
    "containerStatuses": [running("13:05")],
}


def library_of(*seen: dict[str, Any], deleting: str = "", gone: int = 0, node: str = "node-1") -> Library:
    """Return what is known once a watch has shown a Pod in these states, a minute apart."""
    library, observer = Library(), PodObserver()
    whole: dict[str, Any] = {}
    for at, status in enumerate(seen):
        metadata = {"namespace": "default", "name": "db-0", "uid": UID, "creationTimestamp": f"{DAY}13:00Z"}
        if deleting and at == len(seen) - 1:
            metadata |= {"deletionTimestamp": f"{DAY}{deleting}Z"}
        whole = {"metadata": metadata, "spec": {"nodeName": node}, "status": status}
        arrival = CREATED + 60 * SECOND * at
        library.keep(observer.take("MODIFIED", whole, arrival), arrival)
    if gone:
        library.keep(observer.take("DELETED", whole, CREATED + gone * SECOND), CREATED + gone * SECOND)
    return library


def pod_of(library: Library) -> PodStory:
    return library.find("db-0")[0]


def told(library: Library) -> list[str]:
    answer = library.why_pod(pod_of(library), CREATED + 600 * SECOND, live=True)
    assert answer is not None
    assert len(answer.lines) <= 12
    return list(map(plain, answer.lines))


LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi."
LATE = "Pod was active on the node longer than the specified deadline"


@pytest.mark.parametrize(
    ("status", "first", "second"),
    [
        (
            {"reason": "Evicted", "message": LOW, "containerStatuses": [exited("14:00", 137, "Error")]},
            "it ran on node-1: Evicted",
            f"Evicted: {LOW}",
        ),
        (
            {"reason": "DeadlineExceeded", "message": LATE},
            "it ran on node-1: DeadlineExceeded",
            f"DeadlineExceeded: {LATE}",
        ),
        (
            {"containerStatuses": [exited("14:00", 137, "OOMKilled")]},
            "it ran on node-1 and failed",
            "Container main exited with 137 (OOMKilled) at 17:14:00 UTC.",
        ),
    ],
)
def test_the_reason_of_a_failed_pod_is_in_the_first_lines(status: dict[str, Any], first: str, second: str) -> None:
    killed = condition("DisruptionTarget", "True", "13:59", "TerminationByKubelet", LOW)
    disrupted = [killed] if "reason" in status else []
    lines = told(library_of(RUNNING, {"phase": "Failed", "conditions": disrupted, **status}))
    assert first in lines[0]
    assert lines[1] == second
    assert "Finished" in lines[0]
    assert "Gone" not in lines[0]
    assert [line for line in lines[2:] if "Terminated by the kubelet" in line] or not disrupted


def test_a_pod_that_completed_exists_until_it_is_deleted() -> None:
    done = {"phase": "Succeeded", "containerStatuses": [exited("14:00", 0, "Completed")]}
    assert "it ran on node-1 and succeeded. Finished" in told(library_of(RUNNING, done))[0]
    assert "Gone" in told(library_of(RUNNING, done, gone=300))[0]


def test_a_completed_pod_is_gone_when_it_was_deleted_not_when_its_node_had_cleaned_up() -> None:
    done = {"phase": "Succeeded", "containerStatuses": [exited("14:00", 0, "Completed")]}
    library = library_of(RUNNING, done, gone=300)
    named: dict[str, Value] = {"k8s.pod.uid": UID, "k8s.namespace.name": "default", "k8s.pod.name": "db-0"}
    library.keep([span("syncTerminatedPod", named, at=CREATED - START + 70 * SECOND)], CREATED)
    lines = told(library)
    assert "Gone 5m ago" in lines[0]
    cleaned = next(at for at, line in enumerate(lines) if "its node has cleaned up" in line)
    assert "gone from the API server" in lines[cleaned + 1]
    held = library_of(RUNNING, done, deleting="14:30")  # by a finalizer
    held.keep([span("syncTerminatedPod", named, at=CREATED - START + 100 * SECOND)], CREATED)
    assert "Gone" not in told(held)[0]


def test_a_drained_pod_names_who_asked_for_its_eviction() -> None:
    by_api = condition("DisruptionTarget", "True", "14:00", "EvictionByEvictionAPI", "Eviction API: evicting")
    library = library_of(RUNNING, RUNNING | {"conditions": [by_api]}, deleting="14:00")
    request: dict[str, Value] = {
        "http.response.status_code": 201,
        "url.path": "/api/v1/namespaces/default/pods/db-0/eviction",
        "user_agent.original": "kubectl/v1.37.1 (linux/amd64)",
    }
    at = CREATED + 60 * SECOND - START
    library.keep([span(f"POST {PATH}/eviction", request, at=at, kind=2, service="apiserver")], CREATED)
    lines = told(library)
    assert "Evicted through the API by kubectl, 17:14:00 UTC: Eviction API: evicting." in lines
    assert any("eviction asked for by kubectl" in line for line in lines)
    request["http.response.status_code"] = 429  # a PodDisruptionBudget
    library = library_of(RUNNING)
    library.keep([span(f"POST {PATH}/eviction", request, at=at, kind=2, service="apiserver")], CREATED)
    assert library.requests_of(pod_of(library)) == (None, None)


def preempting(library: Library, at: int) -> None:
    """Let an attempt for the Pod `boss` evict the Pod."""
    attempt = MadeAttempt(name="boss", uid="boss", start=at, result="Unschedulable")
    victims: dict[str, Value] = {"scheduler.victims.count": 1, "scheduler.victims.names": ["default/db-0"]}
    raw = encode_span(
        trace_id=attempt.trace_id,
        span_id=b"v" * 8,
        name="plugin: DefaultPreemption",
        start=at,
        end=at + 1,
        events=[Event(at, "preemption", victims)],
    )
    (group,) = attempt.groups()
    library.keep([group], at)
    library.keep([group._replace(spans=frame([raw]), span_count=1)], at)


@pytest.mark.parametrize("watched", [True, False])
def test_a_preempted_pod_names_the_pod_that_took_its_room(watched: bool) -> None:
    reason = "default-scheduler: preempting to accommodate a higher priority pod"
    status = condition("DisruptionTarget", "True", "14:00", "PreemptionByScheduler", reason)
    library = library_of(RUNNING, RUNNING | {"conditions": [status] if watched else []}, deleting="14:00")
    preempting(library, CREATED + 59 * SECOND)
    assert any("reempted by the scheduler for default/boss" in line for line in told(library))


def test_a_pod_is_not_preempted_by_an_attempt_long_before_its_end() -> None:
    library = library_of(RUNNING, RUNNING, deleting="20:00")
    preempting(library, CREATED + 59 * SECOND)
    assert not any("reempted" in line for line in told(library))


def test_restarts_are_those_that_the_api_server_counts() -> None:
    """A podtrail that starts later sees one start of a container that was started ten times."""
    late = running("14:00", restarts=9, lastState=exited("13:59", 137, "OOMKilled")["state"])
    init = {"name": "setup", "restartCount": 3, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    library = library_of(RUNNING | {"containerStatuses": [late], "initContainerStatuses": [init]})
    lines = told(library)
    assert "9 restarts" in lines[0]
    assert lines[1] == "Container main exited with 137 (OOMKilled) at 17:13:59 UTC."


def test_resizing_in_place_is_told() -> None:
    before, after = ({"resources": {"requests": {"cpu": cpu}}} for cpu in ("100m", "200m"))
    waits = condition("PodResizePending", "True", "14:00", "Deferred", "Node didn't have enough resource: cpu")
    library = library_of(
        RUNNING | {"containerStatuses": [running("13:05") | before]},
        RUNNING | {"containerStatuses": [running("13:05") | before], "conditions": [waits]},
        RUNNING | {"containerStatuses": [running("13:05") | after]},
    )
    lines = told(library)
    assert any("resize waits: Deferred: Node didn't have enough resource: cpu" in line for line in lines)
    assert any("resized of main: cpu 100m -> cpu 200m" in line for line in lines)


def test_failures_are_shown_where_there_is_no_room_for_all() -> None:
    many = [running("13:05") | {"name": f"sidecar-{number}"} for number in range(14)]
    done = {"phase": "Failed", "containerStatuses": [*many, exited("14:00", 137, "OOMKilled")]}
    assert any("container main exited with 137 (OOMKilled)" in line for line in told(library_of(RUNNING, done)))


def test_gates_and_a_kubelet_that_is_late_are_parts_of_the_time_until_a_container_ran() -> None:
    library, observer = Library(), PodObserver()
    metadata = {"namespace": "default", "name": "db-0", "uid": UID, "creationTimestamp": f"{DAY}13:00Z"}
    for at, spec in (
        (0, {"schedulingGates": [{"name": "example.com/quota"}]}),
        (112, {}),
        (113, {"nodeName": "node-1"}),
    ):
        seen = {"metadata": metadata, "spec": spec, "status": {}}
        library.keep(observer.take("ADDED" if at == 0 else "MODIFIED", seen, CREATED + at * SECOND), CREATED)
    attempt = MadeAttempt(name="db-0", uid=UID, start=CREATED + 112 * SECOND, duration=SECOND, result="Success")
    library.keep(attempt.groups(), CREATED)
    named: dict[str, Value] = {"k8s.pod.uid": UID, "k8s.namespace.name": "default", "k8s.pod.name": "db-0"}
    since = CREATED - START
    library.keep([span("syncPod", named, at=since + 122 * SECOND, took=2 * SECOND)], CREATED)
    start = "runtime.v1.RuntimeService/StartContainer"
    library.keep([span(start, parent=1, number=7, at=since + 123 * SECOND, took=SECOND, kind=3)], CREATED)
    assert time_to_start(pod_of(library), None) == [
        ("gated: example.com/quota", 112 * SECOND),
        ("scheduling and binding", SECOND),
        ("bound, until the kubelet takes it on", 9 * SECOND),
        ("kubelet, until its first container ran", 2 * SECOND),
    ]


def test_a_deletion_before_the_pod_ended_another_pod_of_its_name() -> None:
    library = library_of(RUNNING)
    path = "/api/v1/namespaces/default/pods/db-0"
    request: dict[str, Value] = {"http.response.status_code": 200, "url.path": path}
    for number, at in enumerate((-2 * SECOND, 30 * SECOND), start=1):
        group = span(f"DELETE {PATH}", request, at=CREATED + at - START, kind=2, number=number, trace=number)
        library.keep([group], CREATED)
        _, deleted = library.requests_of(pod_of(library))
        assert (deleted is not None) == (at > 0)


def test_a_static_pod_and_its_mirror_are_one_pod_that_outlives_its_mirror() -> None:
    static, mirrors = "5bcdc83a0ab42e8a8ab9d1a1ce6f5b4c", (UID, UID.replace("9", "8"))
    library, observer = Library(), PodObserver()
    named: dict[str, Value] = {"k8s.pod.uid": static, "k8s.namespace.name": "kube-system"}
    named["k8s.pod.name"] = "etcd-node-1"
    library.keep([span("syncPod", named, at=CREATED - START)], CREATED)
    annotations = {"kubernetes.io/config.hash": static, "kubernetes.io/config.mirror": static}
    changes = ("ADDED", mirrors[0]), ("MODIFIED", mirrors[0]), ("DELETED", mirrors[0]), ("ADDED", mirrors[1])
    for number, (change, uid) in enumerate(changes):
        metadata = {"namespace": "kube-system", "name": "etcd-node-1", "uid": uid, "annotations": annotations}
        metadata["creationTimestamp"] = f"{DAY}{13 + 3 * mirrors.index(uid)}:30Z"
        if change == "MODIFIED":
            metadata["deletionTimestamp"] = f"{DAY}14:30Z"
        mirror = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": RUNNING}
        at = CREATED + (30 + 60 * number) * SECOND
        library.keep(observer.take(change, mirror, at), at)
        states = {pod.state for pod in library.stories.pods()}
        assert states == {"terminated" if change == "DELETED" else "running"}
    (pod,) = library.stories.pods()
    assert [library.pod(uid) for uid in (static, mirrors[1])] == [pod, pod]
    assert [part.what for part in time_to_start(pod, None)] == ["kubelet, until its first container ran"]


def test_a_page_elsewhere_knows_of_a_pod_without_a_node_what_k8s_pods_sends() -> None:
    library, observer = Library(), PodObserver()
    metadata = {"namespace": "default", "name": "db-0", "uid": UID, "creationTimestamp": f"{DAY}13:00Z"}
    not_ready = condition("PodScheduled", "False", "13:20", "NotReadyForScheduling", "waiting for a claim")
    no_room = condition(
        "PodScheduled", "False", "13:20", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."
    )
    gated = {"schedulingGates": [{"name": "example.com/quota"}]}

    def state(at: int, spec: dict[str, Any], *conditions: dict[str, str], change: str = "MODIFIED") -> tuple[str, str]:
        seen = {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}
        library.keep(observer.take(change, seen, CREATED + at * SECOND), CREATED)
        pod = pod_of(library)
        return pod.state, pod.headline

    assert state(0, gated, change="ADDED") == ("gated", "gates: example.com/quota")
    assert state(10, {})[0] == "waiting"
    assert state(20, {}, not_ready) == ("gated", "waiting for a claim")
    assert state(30, {}, no_room) == ("unschedulable", "1 NodeResourcesFit")
    lines = told(library)
    assert "is Pending for" in lines[0]
    assert "  1  NodeResourcesFit  Insufficient cpu" in lines
    assert waits_for(pod_of(library)) == "NodeResourcesFit: Insufficient cpu"
    assert state(40, {"nodeName": "n1"}) == ("scheduled", "on n1")
    assert state(50, {"nodeName": "n1"}, change="DELETED")[0] == "deleted"
    (pod,) = library.stories.pods()
    assert (pod.left_as, pod.until_unix_nano) == ("scheduled", CREATED + 40 * SECOND)
    assert (pod.gated_until_unix_nano, pod.past_gates) == (CREATED + 30 * SECOND, ("example.com/quota",))


def test_a_pod_that_was_ready_and_is_no_longer_is_not_said_to_be_ready() -> None:
    unready = "containers with unready status: [main]"
    lost = RUNNING | {"conditions": [condition("Ready", "False", "14:00", "ContainersNotReady", unready)]}
    lines = told(library_of(RUNNING, lost))
    assert "ready since" not in lines[0]
    assert ", no longer ready (17:14:00 UTC)." in lines[0]
    assert any(f"no longer ready: {unready}" in line for line in lines)


def test_a_container_that_waits_anew_after_each_restart_is_in_a_crash_loop_each_time() -> None:
    def crashed(restarts: int, second: int) -> dict[str, Any]:
        ended = exited(f"{13 + restarts}:{second}", 137, "OOMKilled")["state"]
        back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
        return {"containerStatuses": [running("", restarts, state=back_off, lastState=ended)]}

    again = {"containerStatuses": [running("14:20", 1, lastState=exited("13:50", 137, "OOMKilled")["state"])]}
    lines = told(library_of(RUNNING, crashed(1, 50), again, crashed(2, 30)))
    assert "default/db-0: crash loop on node-1" in lines[0]
    assert "2 restarts" in lines[0]
    assert any("CrashLoopBackOff of main, 2 times" in line for line in lines)
    assert "since 17:14:00 UTC" in lines[0]
    apart = library_of(RUNNING, crashed(1, 50), again, *[again] * 15, crashed(2, 30))
    assert "since 17:31:00 UTC" in told(apart)[0]


def test_an_image_fails_since_the_first_failure_whatever_the_kubelet_calls_it() -> None:
    def failing(reason: str) -> dict[str, Any]:
        return {"containerStatuses": [running("", state={"waiting": {"reason": reason, "message": "not found"}})]}

    (first, *_) = told(library_of(failing("ErrImagePull"), failing("ImagePullBackOff")))
    assert "image pull failing on node-1 since 17:13:00 UTC" in first


def test_a_pod_whose_init_container_runs_is_starting() -> None:
    waits = {"name": "main", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}
    first = {"initContainerStatuses": [running("13:05") | {"name": "wait-db"}], "containerStatuses": [waits]}
    library = library_of(first)
    lines = told(library)
    assert "is starting on node-1" in lines[0]
    assert ", init container wait-db since 17:13:05 UTC" in lines[0]
    pod = pod_of(library)
    assert (pod.unready(CREATED + 20 * SECOND), pod.unready(CREATED + 600 * SECOND)) == (False, True)
    assert "is running on node-1" in told(library_of(first, RUNNING))[0]


@pytest.mark.parametrize("number", [1, 7])
def test_a_pod_is_pending_since_its_creation_where_that_is_known(number: int) -> None:
    library, observer = Library(), PodObserver()
    metadata = {"namespace": "default", "name": "db-0", "uid": UID, "creationTimestamp": f"{DAY}13:00Z"}
    library.keep(observer.take("ADDED", {"metadata": metadata, "spec": {}, "status": {}}, CREATED), CREATED)
    at = CREATED + 60 * SECOND
    failed = MadeAttempt(name="db-0", uid=UID, start=at, result="Unschedulable", number=number)
    library.keep(failed.groups(), CREATED)
    assert "is Pending for 10m: " in told(library)[0]


CREATING = {"name": "main", "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}
SCHEDULED = condition("PodScheduled", "True", "13:01")
PENDING = {"phase": "Pending", "conditions": [SCHEDULED], "containerStatuses": [CREATING]}
MOUNT = 'MountVolume.SetUp failed for volume "cfg" : configmap "app-config" not found'


def warning(reason: str, message: str, at: str, *, new: bool = False, first: str = "") -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "db-0", "uid": UID}
    whole = {"metadata": {"name": f"db-0.{reason}", "namespace": "default"}, "reason": reason, "type": "Warning"}
    if new:
        return {**whole, "regarding": about, "note": message, "eventTime": f"{DAY}{at}.000123Z"}
    times = {"firstTimestamp": f"{DAY}{first or at}Z", "lastTimestamp": f"{DAY}{at}Z", "count": 4}
    source = {"component": "kubelet", "host": "node-1"}
    return {**whole, "involvedObject": about, "message": message, "source": source, **times}


@pytest.mark.parametrize("new", [False, True], ids=["core/v1", "events.k8s.io/v1"])
@pytest.mark.parametrize("reason", ["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"])
def test_a_bound_pod_whose_containers_do_not_start_names_the_warning_of_its_node(reason: str, new: bool) -> None:
    library, observer = library_of(PENDING), PodObserver()
    event = warning(reason, MOUNT, "15:00", new=new, first="13:02")
    for _ in range(2):  # a list after a restart tells it again
        library.keep(observer.warn("LISTED", event, CREATED + 180 * SECOND), CREATED + 180 * SECOND)
    assert pod_of(library).state == "start failing"
    since = "17:15:00" if new else "17:13:02"
    assert told(library)[:2] == [f"default/db-0: start failing on node-1 since {since} UTC.", f"{reason}: {MOUNT}"]


def test_a_warning_of_a_pod_that_serves_is_not_its_state() -> None:
    library = library_of(RUNNING)
    library.keep(PodObserver().warn("ADDED", warning("FailedMount", MOUNT, "15:00"), CREATED), CREATED)
    assert pod_of(library).state == "running"


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_pod_whose_deletion_waits_names_its_finalizers(phase: str) -> None:
    library, observer = Library(), PodObserver()
    for names in (["example.com/backup", "example.com/dns"], ["example.com/dns"]):
        meta: dict[str, Any] = {"namespace": "default", "name": "db-0", "uid": UID, "creationTimestamp": f"{DAY}13:00Z"}
        meta |= {"deletionTimestamp": f"{DAY}14:30Z", "deletionGracePeriodSeconds": 30, "finalizers": names}
        status = {**RUNNING, "phase": phase, "containerStatuses": [exited("14:10", 0, "Completed")]}
        whole: dict[str, Any] = {"metadata": meta, "spec": {"nodeName": "node-1"}, "status": status}
        library.keep(observer.take("MODIFIED", whole, CREATED + 120 * SECOND), CREATED + 120 * SECOND)
        words = f"Deletion was asked for at 17:14:00 UTC. It waits for finalizers: {', '.join(names)}"
        assert words in told(library)
    whole["metadata"]["finalizers"] = []
    library.keep(observer.take("DELETED", whole, CREATED + 200 * SECOND), CREATED + 200 * SECOND)
    assert not any("finalizers:" in each for each in told(library))
