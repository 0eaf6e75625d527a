from collections.abc import Mapping
from typing import Any

import pytest
from podtrail_scheduler.objects import (
    HostPort,
    Node,
    Pod,
    Taint,
    Toleration,
    Volume,
)
from podtrail_scheduler.objects.decoding import decode, decode_node, decode_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(spec: Mapping[str, Any] | None = None, status: Mapping[str, Any] | None = None) -> Pod:
    metadata = {"name": "a", "namespace": "b", "uid": "c"}
    return decode_pod({"metadata": metadata, "spec": spec or {}, "status": status or {}})


def test_the_smallest_pod_has_the_defaults_of_the_api() -> None:
    found = decode_pod({"metadata": {"name": "a", "namespace": "b", "uid": "c"}, "spec": {"containers": [{}]}})
    assert found == Pod("a", "b", "c", images=("",), nonzero_requests=(100, 200 * 1024**2))


def test_a_pod_is_read_with_all_that_scheduling_looks_at() -> None:
    found = decode_pod(
        {
            "metadata": {
                "name": "web-0",
                "namespace": "shop",
                "uid": "u-1",
                "labels": {"app": "web"},
                "creationTimestamp": "2026-11-22T12:00:00Z",
                "deletionTimestamp": "2026-11-22T12:00:01.5Z",
                "ownerReferences": [
                    {"kind": "Other", "name": "x"},
                    {"kind": "StatefulSet", "name": "web", "uid": "u-0", "apiVersion": "apps/v1", "controller": True},
                ],
                "resourceVersion": "7",
            },
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
                "priority": 9,
                "preemptionPolicy": "Never",
                "schedulingGates": [{"name": "g"}],
                "schedulerName": "mine",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {"image": "nginx", "ports": [{"containerPort": 1}, {"hostPort": 80, "hostIP": "10.0.0.1"}]}
                ],
                "volumes": [
                    {"name": "token", "projected": {"sources": []}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                    {"name": "disk", "gcePersistentDisk": {"pdName": "d"}},
                ],
            },
            "status": {
                "phase": "Running",
                "nominatedNodeName": "n1",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}],
            },
        }
    )
    assert found.creation_timestamp == 1_795_348_800 * 10**9
    assert found.deletion_timestamp == 1_795_348_801_500 * 10**6
    assert found.owner is not None
    assert found.owner.name == "web"
    assert found.tolerations == (Toleration("k", "Exists", "", "NoExecute", 5),)
    assert found.host_ports == (HostPort(80, "TCP", "10.0.0.1"),)
    assert found.images == ("nginx",)
    assert found.volumes == (
        Volume("data", claim_name="data-0"),
        Volume("scratch", ephemeral=True),
        Volume("disk", kind="gcePersistentDisk", source={"pdName": "d"}),
    )
    assert found.conditions == {"PodScheduled": ("False", "Unschedulable", "m")}
    assert (found.scheduling_gates, found.scheduler_name, found.nominated_node_name) == (("g",), "mine", "n1")
    assert (found.priority, found.preemption_policy, found.termination_grace_period) == (9, "Never", 0)


def asks(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "cpu", "nonzero_cpu"),
    [
        pytest.param({"containers": [asks(cpu="1"), asks(cpu="500m")]}, 1500, 1500, id="containers are summed"),
        pytest.param({"containers": [asks(cpu="1"), {}]}, 1000, 1100, id="one that asks for nothing scores 100m"),
        pytest.param({"containers": [asks(cpu="0")]}, 0, 0, id="one that asks for 0 scores 0"),
        pytest.param(
            {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3"), asks(cpu="2")]}, 3000, 3000, id="init"
        ),
        pytest.param(
            {
                "containers": [asks(cpu="1")],
                "initContainers": [asks(cpu="2"), {**asks(cpu="500m"), "restartPolicy": "Always"}, asks(cpu="2")],
            },
            2500,
            2500,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, 1250, 1250, id="overhead"),
        pytest.param({"containers": [asks(cpu="1")], **asks(cpu="3")}, 3000, 3000, id="Pod level"),
        pytest.param({"containers": [{}], **asks(memory="1Gi")}, None, 100, id="Pod level without cpu"),
        pytest.param({"containers": [asks(cpu="100u"), asks(cpu="100u")]}, 1, 1, id="rounded up once"),
    ],
)
def test_requests_are_what_the_pod_takes_at_most(spec: Mapping[str, Any], cpu: int | None, nonzero_cpu: int) -> None:
    found = pod(spec)
    assert found.requests.get("cpu") == cpu
    assert found.nonzero_requests is not None
    assert found.nonzero_requests[0] == nonzero_cpu


def test_a_pod_being_resized_counts_as_the_largest_of_wanted_allocated_and_in_force() -> None:
    spec = {"containers": [{"name": "c", **asks(cpu="1")}]}
    in_force = {"name": "c", "allocatedResources": {"cpu": "2"}, **asks(cpu="3")}
    assert pod(spec, {"containerStatuses": [in_force]}).requests == {"cpu": 3000}
    infeasible = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    larger = {"containers": [{"name": "c", **asks(cpu="9")}]}
    assert pod(larger, {"containerStatuses": [in_force], **infeasible}).requests == {"cpu": 3000}


def test_resources_that_the_scheduler_does_not_count_are_left_out() -> None:
    found = pod({"containers": [asks(**{"cpu": "1", "gpu": "1", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"})]})
    assert found.requests == {"cpu": 1000, "example.com/gpu": 2, "hugepages-2Mi": 4 * 1024**2}


def test_a_node_is_read() -> None:
    found = decode_node(
        {
            "metadata": {"name": "n", "labels": {"zone": "a"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]},
            "status": {
                "allocatable": {"cpu": "3920m", "memory": "1Ki", "pods": "110", "example.com/gpu": "1"},
                "images": [{"names": ["a:1", "a@sha256:2"], "sizeBytes": 5}, {"names": ["a:1"], "sizeBytes": 6}],
                "conditions": [{"type": "Ready", "status": "True"}],
                "declaredFeatures": ["F"],
            },
        }
    )
    assert found == Node(
        "n",
        {"zone": "a"},
        {"cpu": 3920, "memory": 1024, "pods": 110, "example.com/gpu": 1},
        (Taint("k", "", "NoExecute"),),
        unschedulable=True,
        images={"a:1": 5, "a@sha256:2": 5},
        conditions=(("Ready", "True"),),
        declared_features=frozenset(("F",)),
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"containers": [asks(cpu="1"), asks(cpu="1x")]},
            "spec.containers[1].resources.requests.cpu: '1x' is not a quantity such as 2, 500m or 1Gi",
        ),
        ({"containers": {"name": "c"}}, "spec.containers: {'name': 'c'} is not a list"),
        ({"priority": "high"}, "spec.priority: 'high' is not an integer"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a: 1 is not a string"),
        ({"tolerations": [{"key": []}]}, "spec.tolerations[0].key: [] is not a string"),
        (
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": 1}]}}},
            f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey: 1 is not a string",
        ),
    ],
)
def test_what_scheduling_cannot_read_is_told_with_its_path(spec: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        pod(spec)
    assert str(refused.value) == message


def test_odd_values_of_fields_that_scheduling_does_not_need_are_no_matter() -> None:
    found = pod({"containers": [{"command": 5, "env": "x", "livenessProbe": []}], "dnsPolicy": 3, "securityContext": 1})
    assert found.name == "a"


def test_a_kind_that_scheduling_does_not_know_is_told() -> None:
    with pytest.raises(ValueError, match="apiVersion, kind: 'v1' 'Secret' is not one of v1 Pod, v1 Node"):
        decode({"apiVersion": "v1", "kind": "Secret"})


def test_what_a_pod_needs_of_a_nodes_features_is_found_in_its_specification() -> None:
    rules = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
    assert pod({"containers": [rules]}).required_node_features == {"RestartAllContainersOnContainerExits"}
    assert pod({"hostNetwork": True, "hostUsers": False}).required_node_features == {"UserNamespacesHostNetworkSupport"}
    assert pod({"hostUsers": False}).required_node_features == frozenset()


def test_pod_level_resources_leave_what_the_containers_ask_for_beside_them() -> None:
    found = pod({"containers": [asks(cpu="1"), {}], "resources": {"requests": {"cpu": "3"}}})
    assert found.container_requests == {"cpu": 1100, "memory": 400 * 1024**2}
    assert pod({"containers": [asks(cpu="1")]}).container_requests is None
