"""Manifests as people write them get what an API server fills in; misspelt fields are refused, unknown ones named."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from podtrail_scheduler import Workload
from podtrail_scheduler.objects import PersistentVolumeClaim, Pod
from podtrail_scheduler.workload.manifests import read_objects
from pydantic import ValidationError

from tests.scheduler.cluster.test_written_workload import node

GIB = 1024**3
GPU = "example.com/gpu"
TWO = {"cpu": "2"}
LIMITED: dict[str, Any] = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def manifest(kind: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": fields.pop("name", kind.lower())}, **fields}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return manifest("Pod", spec={"containers": [{"name": "a", **each} for each in containers], **spec})


def resources(**given: dict[str, str]) -> dict[str, Any]:
    return {"resources": given}


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return manifest("PriorityClass", "scheduling.k8s.io/v1", name=name, value=value, **more)


def workload(tmp_path: Path, *documents: dict[str, Any]) -> Workload:
    """Each document in a file of its own."""
    files = [tmp_path / f"{number}.yaml" for number in range(len(documents) + 1)]
    for file, document in zip(files, [*documents, node("n1")], strict=True):
        file.write_text(yaml.safe_dump(document), "utf-8")
    return Workload.model_validate({"objects": {"files": list(map(str, files))}})


def the_pod(tmp_path: Path, *documents: dict[str, Any]) -> Pod:
    (found,) = workload(tmp_path, *documents).written.pending
    return found


@pytest.mark.parametrize(
    ("given", "requests"),
    [
        (pod(resources(limits={"cpu": "2", "memory": "1Gi"})), {"cpu": 2000, "memory": GIB}),
        (pod(resources(limits={"cpu": "2"}, requests={"cpu": "1"})), {"cpu": 1000}),
        (
            pod(resources(limits={"cpu": "2", "example.com/gpu": "1"}, requests={"cpu": "1"})),
            {"cpu": 1000, "example.com/gpu": 1},
        ),
        (pod({}, initContainers=[{"name": "i", **resources(limits={"cpu": "3"})}]), {"cpu": 3000}),
        (pod({}, **resources(limits={"cpu": "2"})), {"cpu": 2000}),
        (
            pod(resources(requests={"cpu": "500m"}), **resources(limits={"cpu": "2", "memory": "1Gi"})),
            {"cpu": 500, "memory": GIB},
        ),
        (
            pod(resources(limits={"cpu": "1"}), **resources(limits={"cpu": "2"}, requests={"cpu": "1500m"})),
            {"cpu": 1500},
        ),
        (pod({}), {}),
    ],
)
def test_limits_become_requests(tmp_path: Path, given: dict[str, Any], requests: dict[str, int]) -> None:
    assert the_pod(tmp_path, given).requests == requests


def limit_range(*limits: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    found = manifest("LimitRange", spec={"limits": [{"type": "Container", **each} for each in limits]})
    found["metadata"]["namespace"] = namespace
    return found


CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("given", "limits", "requests"),
    [
        (pod({}), [{"default": CPU_AND_MEMORY}], {"cpu": 1000, "memory": GIB}),
        (pod({}), [{"default": CPU_AND_MEMORY, "defaultRequest": {"cpu": "100m"}}], {"cpu": 100, "memory": GIB}),
        (pod({}), [{"max": {"cpu": "4"}, "min": CPU_AND_MEMORY}], {"cpu": 4000, "memory": GIB}),
        (pod(resources(limits=TWO)), [{"defaultRequest": CPU_AND_MEMORY}], {"cpu": 2000, "memory": GIB}),
        (pod({}, initContainers=[{"name": "i"}]), [{"defaultRequest": TWO}], {"cpu": 2000}),
        (pod({}), [{"type": "Pod", "max": TWO}], {}),
    ],
)
def test_a_limit_range_gives_its_defaults_to_pods_of_its_namespace_at_their_creation(
    tmp_path: Path, given: dict[str, Any], limits: list[dict[str, Any]], requests: dict[str, int]
) -> None:
    other = limit_range({"defaultRequest": {"cpu": "7"}}, namespace="other")
    assert the_pod(tmp_path, given, limit_range(*limits), other).requests == requests
    created = {**given, "metadata": {**given["metadata"], "uid": "u"}}
    assert the_pod(tmp_path, created, limit_range(*limits)).requests == the_pod(tmp_path, created).requests


GVISOR = manifest(
    "RuntimeClass",
    "node.k8s.io/v1",
    name="gvisor",
    handler="runsc",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"sandbox": "yes"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]},
)


def test_a_runtime_class_gives_overhead_node_selector_and_tolerations(tmp_path: Path) -> None:
    found = the_pod(tmp_path, pod(resources(requests=TWO), runtimeClassName="gvisor"), GVISOR)
    assert found.requests == {"cpu": 2250}
    assert found.node_selector == {"sandbox": "yes"}
    assert [each.key for each in found.tolerations] == [*TOLERATED, "sandbox"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"runtimeClassName": "kata"}, "Pod default/pod: no RuntimeClass with name kata was found; add it to files"),
        ({"nodeSelector": {"sandbox": "no"}}, "RuntimeClass gvisor wants sandbox=yes, nodeSelector sandbox=no"),
        ({"overhead": {"cpu": "1"}}, "RuntimeClass gvisor has another overhead than the Pod"),
    ],
)
def test_a_pod_that_its_runtime_class_does_not_admit_is_refused(
    tmp_path: Path, spec: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        workload(tmp_path, pod({}, **{"runtimeClassName": "gvisor", **spec}), GVISOR)


@pytest.mark.parametrize(("on_host", "ports"), [(True, [80, 9090]), (False, [9090])])
def test_ports_of_a_pod_in_the_hosts_network_are_the_hosts(tmp_path: Path, on_host: bool, ports: list[int]) -> None:
    given = pod({"ports": [{"containerPort": 80}, {"containerPort": 90, "hostPort": 9090}]}, hostNetwork=on_host)
    assert [port.port for port in the_pod(tmp_path, given).host_ports] == ports


@pytest.mark.parametrize(
    ("spec", "classes", "priority", "policy"),
    [
        ({"priorityClassName": "high"}, [priority_class("high", 1000, preemptionPolicy="Never")], 1000, "Never"),
        ({"priorityClassName": "system-node-critical"}, [], 2_000_001_000, "PreemptLowerPriority"),
        ({}, [priority_class("usual", 7, globalDefault=True), priority_class("high", 9)], 7, "PreemptLowerPriority"),
        ({}, [priority_class("high", 9)], 0, "PreemptLowerPriority"),
        ({"priority": 3, "priorityClassName": "gone"}, [], 3, "PreemptLowerPriority"),
    ],
)
def test_a_priority_class_gives_its_priority(
    tmp_path: Path, spec: dict[str, Any], classes: list[dict[str, Any]], priority: int, policy: str
) -> None:
    found = the_pod(tmp_path, pod({}, **spec), *classes)
    assert (found.priority, found.preemption_policy) == (priority, policy)


def test_a_class_that_is_nowhere_is_refused_as_an_api_server_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="Pod default/pod: no PriorityClass with name high was found"):
        workload(tmp_path, pod({}, priorityClassName="high"))


def test_pods_bear_that_their_node_fails_for_five_minutes(tmp_path: Path) -> None:
    own = {"key": TOLERATED[0], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}
    found = the_pod(tmp_path, pod({}, tolerations=[own])).tolerations
    assert [(each.key, each.toleration_seconds) for each in found] == [(TOLERATED[0], 7), (TOLERATED[1], 300)]


def test_a_claim_without_a_storage_class_gets_the_default_one(tmp_path: Path) -> None:
    default = manifest("StorageClass", "storage.k8s.io/v1", name="fast", provisioner="p")
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    given = workload(tmp_path, pod({}), manifest("PersistentVolumeClaim", spec={}), default)
    (claim,) = [each for each in given.written.others if isinstance(each, PersistentVolumeClaim)]
    assert claim.storage_class_name == "fast"


@pytest.mark.parametrize(
    ("given", "path", "meant"),
    [
        (pod({}, tolerationz=[]), "spec.tolerationz", "tolerations"),
        (pod({}, nodeselector={}), "spec.nodeselector", "nodeSelector"),
        (pod({"resource": {}}), "spec.containers[0].resource", "resources"),
        (pod(resources(request={"cpu": "1"})), "spec.containers[0].resources.request", "requests"),
        (manifest("Node", spec={"taint": []}), "spec.taint", "taints"),
        (limit_range({"defaultRequests": TWO}), "spec.limits[0].defaultRequests", "defaultRequest"),
        (manifest("RuntimeClass", "node.k8s.io/v1", schedulin={}), "schedulin", "scheduling"),
        (manifest("PersistentVolumeClaim", spec={"storageClass": "a"}), "spec.storageClass", "storageClassName"),
    ],
)
def test_a_misspelt_field_is_refused_where_it_stands(
    tmp_path: Path, given: dict[str, Any], path: str, meant: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(given), "utf-8")
    with pytest.raises(ValueError, match=rf"a\.yaml:\d+:\d+: .*did you mean {meant}\?") as refused:
        read_objects(str(file))
    assert path in str(refused.value)


def test_fields_of_another_release_are_named_and_passed_over(tmp_path: Path) -> None:
    given = workload(tmp_path, pod({}, quantumEntanglement={"with": "b"}))
    assert given.objects is not None
    (place,) = given.objects.unknown
    assert place.startswith(f"{tmp_path}/0.yaml:")
    assert place.endswith(": spec.quantumEntanglement")


def test_the_fields_are_those_of_the_official_client() -> None:
    pytest.importorskip("kubernetes")
    from tools.object_fields import FILE, text

    assert FILE.read_text("utf-8") == text()
