"""The scheduler as docker/kubernetes/scheduler runs it: its ServiceAccount and gates. It is refused nothing it does."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scheduler.collector import Collector

pytestmark = pytest.mark.control_plane

MANIFESTS = Path(__file__).parents[4] / "docker" / "kubernetes" / "scheduler"
RBAC = MANIFESTS / "rbac.yaml"
COLLECTIONS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
}


@pytest.fixture(scope="module")
def service_account(control_plane: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of the ServiceAccount, by a token in a file, as in a Pod."""
    api = control_plane.api
    for document in yaml.safe_load_all(RBAC.read_text(encoding="utf-8")):
        api.create(COLLECTIONS[document["kind"]], document)
    path = "/api/v1/namespaces/kube-system/serviceaccounts/podtrail-scheduler/token"
    folder = tmp_path_factory.mktemp("service-account")
    token = folder / "token"
    token.write_text(api.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])
    kubeconfig: Path = control_plane.write_kubeconfig(folder / "kubeconfig", {"tokenFile": str(token)})
    return kubeconfig


@pytest.fixture(scope="module")
def gates() -> str:
    """Those of the Deployment."""
    deployment = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text(encoding="utf-8"))
    scheduler = deployment["spec"]["template"]["spec"]["containers"][0]
    flag = "--feature-gates="
    return ",".join(word.removeprefix(flag) for word in scheduler["args"] if word.startswith(flag))


def bound(pod: Any) -> Any:
    return pod["spec"].get("nodeName")


def test_elects_binds_preempts_and_tells_without_a_refusal(
    control_plane: Any,
    namespace: str,
    running: Any,
    until: Any,
    make_pod: Any,
    service_account: Path,
    gates: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", {"cpu": "1"}, labels={"for": namespace})
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": namespace}, "value": 1000})
    api.create("/apis/storage.k8s.io/v1/storageclasses", waiting_class(namespace))
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    api.create(claims, claim("data", namespace))
    api.create("/api/v1/persistentvolumes", volume(f"{namespace}-v", namespace))
    api.patch(f"/api/v1/persistentvolumes/{namespace}-v/status", {"status": {"phase": "Available"}})
    selector = {"nodeSelector": {"for": namespace}}
    election = {"leaderElect": True, "resourceNamespace": "kube-system", "resourceName": "podtrail-scheduler"}

    async def test() -> None:
        async with running(namespace, kubeconfig=service_account, gates=gates, leaderElection=election):
            await asyncio.to_thread(api.create, pods, make_pod("low", namespace, "1", **selector))
            await until(lambda: api.get(f"{pods}/low"), bound)
            volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            urgent = make_pod("high", namespace, "1", priorityClassName=namespace, volumes=volumes, **selector)
            await asyncio.to_thread(api.create, pods, urgent)
            path = f"/api/v1/persistentvolumes/{namespace}-v"
            await until(lambda: api.get(path)["spec"].get("claimRef"))
            await asyncio.to_thread(complete_the_binding, api, claims, path)
            await until(lambda: api.get(f"{pods}/high"), bound)
            events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
            await until(
                lambda: {each["reason"] for each in api.get(events)["items"]},
                lambda reasons: reasons >= {"FailedScheduling", "Preempted", "Scheduled"},
            )

    with caplog.at_level(logging.INFO):
        asyncio.run(test())
    assert not [record for record in caplog.records if "forbidden" in record.getMessage()]


def test_makes_claims_for_extended_resources_without_a_refusal(
    control_plane: Any,
    namespace: str,
    running: Any,
    until: Any,
    make_pod: Any,
    service_account: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    resource, driver = f"{namespace}.example.com/gpu", f"{namespace}.example.com"
    api.node(f"{namespace}-n", labels={"for": namespace})
    spec = {
        "driver": driver,
        "nodeName": f"{namespace}-n",
        "pool": {"name": f"{namespace}-n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x"}],
    }
    api.create("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": namespace}, "spec": spec})
    selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
    stands = {"selectors": [selector], "extendedResourceName": resource}
    api.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": namespace}, "spec": stands})
    pod = make_pod("web", namespace, nodeSelector={"for": namespace})
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}

    async def test() -> None:
        async with running(namespace, kubeconfig=service_account):
            created = await asyncio.to_thread(api.create, pods, pod)
            told = (await until(lambda: api.get(f"{pods}/web"), bound))["status"]["extendedResourceClaimStatus"]
            [mapping] = told["requestMappings"]
            assert mapping == {
                "containerName": created["spec"]["containers"][0]["name"],
                "resourceName": resource,
                "requestName": "container-0-request-0",
            }
            claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
            claim = await asyncio.to_thread(api.get, f"{claims}/{told['resourceClaimName']}")
            assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
            [owner] = claim["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (created["metadata"]["uid"], True)
            [result] = claim["status"]["allocation"]["devices"]["results"]
            assert result["device"] == "x"

    with caplog.at_level(logging.INFO):
        asyncio.run(test())
    assert not [record for record in caplog.records if "forbidden" in record.getMessage()]


def waiting_class(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, storage_class: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def volume(name: str, storage_class: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "for", "operator": "In", "values": [storage_class]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def complete_the_binding(api: Any, claims: str, path: str) -> None:
    """What kube-controller-manager does when the scheduler has written into a volume which claim it is for."""
    completed = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    api.patch(f"{claims}/data", completed | {"spec": {"volumeName": path.rpartition("/")[2]}})
    api.patch(f"{path}/status", {"status": {"phase": "Bound"}})
    api.patch(f"{claims}/data/status", {"status": {"phase": "Bound"}})


def test_allocates_devices_without_a_refusal(
    control_plane: Any,
    namespace: str,
    running: Any,
    until: Any,
    make_pod: Any,
    service_account: Path,
    gates: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    resources = "/apis/resource.k8s.io/v1"
    api.node(f"{namespace}-n", labels={"for": namespace})
    driver = f"{namespace}.example.com"
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    api.create(f"{resources}/deviceclasses", {"metadata": {"name": namespace}, "spec": {"selectors": [selector]}})
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": f"{namespace}-n", "pool": pool, "devices": [{"name": "gpu-0"}]}
    api.create(f"{resources}/resourceslices", {"metadata": {"name": namespace}, "spec": spec})
    requests = [{"name": "gpu", "exactly": {"deviceClassName": namespace}}]
    claims = f"{resources}/namespaces/{namespace}/resourceclaims"
    api.create(claims, {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": requests}}})
    asked = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}], "nodeSelector": {"for": namespace}}

    async def test() -> None:
        async with running(namespace, kubeconfig=service_account, gates=gates):
            await asyncio.to_thread(api.create, pods, make_pod("web", namespace, **asked))
            await until(lambda: api.get(f"{pods}/web"), bound)
            claim = await asyncio.to_thread(api.get, f"{claims}/gpu")
            (result,) = claim["status"]["allocation"]["devices"]["results"]
            assert (result["device"], result["driver"]) == ("gpu-0", driver)
            assert [each["name"] for each in claim["status"]["reservedFor"]] == ["web"]

    with caplog.at_level(logging.INFO):
        asyncio.run(test())
    assert not [record for record in caplog.records if "forbidden" in record.getMessage()]


def test_traces_attempts_and_says_what_holds_a_pod_back_without_a_refusal(
    control_plane: Any,
    namespace: str,
    running: Any,
    until: Any,
    make_pod: Any,
    service_account: Path,
    gates: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})
    selector = {"nodeSelector": {"for": namespace}}
    collector = Collector()
    tracing = {"endpoint": collector.endpoint, "samplingRatePerMillion": 1_000_000}

    def condition() -> Any:
        conditions = api.get(f"{pods}/held")["status"].get("conditions", ())
        return next((each for each in conditions if each["type"] == "PodScheduled"), None)

    async def test() -> None:
        async with running(namespace, kubeconfig=service_account, gates=gates, tracing=tracing):
            claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
            await asyncio.to_thread(api.create, pods, make_pod("held", namespace, resourceClaims=claims))
            await asyncio.to_thread(api.create, pods, make_pod("web", namespace, **selector))
            await until(lambda: api.get(f"{pods}/web"), bound)
            await until(lambda: "SchedulePod" in collector.names)
            told = await until(condition)
            assert told["reason"] == "NotReadyForScheduling"
            assert told["message"] == "Waiting for resource claim 'gpu' to be present"
            annotations = (await asyncio.to_thread(api.get, f"{pods}/web"))["metadata"]["annotations"]
            root = collector.named("SchedulePod")
            assert annotations["tracing.k8s.io/traceparent"] == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"

    try:
        with caplog.at_level(logging.INFO):
            asyncio.run(test())
    finally:
        collector.stop()
    assert not [record for record in caplog.records if "forbidden" in record.getMessage()]
