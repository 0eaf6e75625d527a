"""What Pods and workloads say of themselves: when they are settled, what they wait for, where they have got."""

from typing import Any

import pytest
from podtrail_kubernetes.pod_following.progress import new_progress
from podtrail_kubernetes.pod_following.workloads import expected_pods, gave_up, is_settled


def workload(kind: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": {"observedGeneration": 2} | status}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        ("Deployment", {"replicas": 3}, {}, 3),
        ("Deployment", {}, {}, 1),
        ("StatefulSet", {"replicas": 0}, {}, 0),
        ("Job", {"parallelism": 5, "completions": 3}, {}, 3),
        ("Job", {"parallelism": 5, "suspend": True}, {}, 0),
        ("DaemonSet", {}, {"desiredNumberScheduled": 7}, 7),
        ("DaemonSet", {}, {"observedGeneration": 1}, 1),
        ("ConfigMap", {}, {}, 0),
        ("Deployment", {"replicas": "three"}, {}, 1),
    ],
)
def test_a_workload_says_how_many_pods_it_is_about_to_have(
    kind: str, spec: dict[str, Any], status: dict[str, Any], expected: int
) -> None:
    assert expected_pods(workload(kind, spec, **status)) == expected


@pytest.mark.parametrize(
    ("kind", "spec", "status", "settled"),
    [
        ("Deployment", {"replicas": 2}, {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, True),
        ("Deployment", {"replicas": 2}, {"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}, False),
        (
            "Deployment",
            {"replicas": 2},
            {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
            False,
        ),
        ("Deployment", {"replicas": 0}, {}, True),
        ("StatefulSet", {"replicas": 2}, {"readyReplicas": 1}, False),
        ("ReplicaSet", {"replicas": 2}, {"readyReplicas": 2}, True),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1},
            False,
        ),
        ("Job", {"parallelism": 2, "completions": 2}, {"ready": 1, "succeeded": 1}, True),
        ("Job", {"parallelism": 2, "completions": 2}, {"ready": 1}, False),
        ("Secret", {}, {}, True),
    ],
)
def test_a_workload_is_settled_when_its_controller_has_seen_it_and_has_its_pods(
    kind: str, spec: dict[str, Any], status: dict[str, Any], settled: bool
) -> None:
    assert is_settled(workload(kind, spec, **status)) is settled


def test_a_controller_that_gave_up_says_why() -> None:
    late = {"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "has timed out progressing."}
    assert gave_up(workload("Deployment", {}, conditions=[late])) == (
        "ProgressDeadlineExceeded: has timed out progressing."
    )
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "x"}
    assert gave_up(workload("Job", {}, conditions=[failed])) == "BackoffLimitExceeded: x"
    assert gave_up(workload("Job", {}, conditions=[failed | {"status": "False"}])) == ""
    assert gave_up({"kind": "Job", "status": {"conditions": "none"}}) == ""


def pod(*, node: str = "", conditions: object = (), containers: object = (), phase: str = "Pending") -> dict[str, Any]:
    status = {"phase": phase, "conditions": conditions, "containerStatuses": containers}
    return {"metadata": {"name": "web", "namespace": "d", "uid": "u"}, "spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("state", "waits_for"),
    [
        (pod(), ""),
        (
            pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "m"}]),
            "SchedulingGated: m",
        ),
        (pod(node="n", containers=[{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]), ""),
        (
            pod(node="n", containers=[{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
            "container c: CrashLoopBackOff",
        ),
        (
            pod(node="n", phase="Failed", containers=[{"name": "c", "state": {"terminated": {"exitCode": 9}}}]),
            "container c: exit code 9",
        ),
        (pod(node="n", conditions="none", containers=["odd"]), ""),
    ],
)
def test_a_pod_says_what_it_waits_for(state: dict[str, Any], waits_for: str) -> None:
    progress = new_progress(state, "")
    progress.see(state, 1.0)
    assert progress.waits_for == waits_for


def test_each_step_keeps_the_moment_at_which_it_was_first_seen() -> None:
    progress = new_progress(pod(), "")
    progress.see(pod(), 1.0)
    progress.see(pod(node="n"), 2.0)
    ready = pod(node="n", conditions=[{"type": "Ready", "status": "True"}])
    for moment in (3.0, 4.0):
        progress.see(ready, moment)
    assert progress.steps == {"created": 1.0, "scheduled": 2.0, "ready": 3.0}
    assert progress.good
    progress.see_gone(5.0)
    assert not progress.ended_badly
