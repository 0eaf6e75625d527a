"""The scheduler as docker/kubernetes/scheduler runs it: its ServiceAccount and gates. It is refused nothing it does."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scheduler.cluster.kubernetes.stored_objects import (
    RESOURCE,
    VOLUMES,
    asking_for,
    controller_binds,
    devices,
    local_volume,
    using_volume,
)
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


@pytest.fixture(autouse=True)
def refused_nothing(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, the API server forbids none of it."""
    with caplog.at_level(logging.INFO):
        yield
    assert not [record for record in caplog.get_records("call") if "forbidden" in record.getMessage()]


@pytest.fixture(scope="module")
def gates() -> str:
    """Those of the Deployment."""
    deployment = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text(encoding="utf-8"))
    scheduler = deployment["spec"]["template"]["spec"]["containers"][0]
    flag = "--feature-gates="
    return ",".join(word.removeprefix(flag) for word in scheduler["args"] if word.startswith(flag))


def bound(pod: Any) -> Any:
    return pod["spec"].get("nodeName")


async def test_elects_binds_preempts_and_tells(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, service_account: Path, gates: str
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", {"cpu": "1"}, labels={"for": namespace})
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": namespace}, "value": 1000})
    local_volume(api, namespace, f"{namespace}-n")
    selector = {"nodeSelector": {"for": namespace}}
    election = {"leaderElect": True, "resourceNamespace": "kube-system", "resourceName": "podtrail-scheduler"}
    async with running(namespace, kubeconfig=service_account, gates=gates, leaderElection=election):
        await asyncio.to_thread(api.create, pods, make_pod("low", namespace, "1", **selector))
        await until(lambda: api.get(f"{pods}/low"), bound)
        urgent = using_volume(make_pod("high", namespace, "1", priorityClassName=namespace, **selector))
        await asyncio.to_thread(api.create, pods, urgent)
        await until(lambda: api.get(f"{VOLUMES}/{namespace}")["spec"].get("claimRef"))
        await asyncio.to_thread(controller_binds, api, namespace)
        await until(lambda: api.get(f"{pods}/high"), bound)
        events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        await until(
            lambda: {each["reason"] for each in api.get(events)["items"]},
            lambda reasons: reasons >= {"FailedScheduling", "Preempted", "Scheduled"},
        )


async def test_makes_claims_for_extended_resources(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, service_account: Path
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    resource = f"{namespace}.example.com/gpu"
    api.node(f"{namespace}-n", labels={"for": namespace})
    devices(api, namespace, f"{namespace}-n", "x", extendedResourceName=resource)
    pod = asking_for(make_pod("web", namespace, nodeSelector={"for": namespace}), resource)
    del pod["spec"]["containers"][0]["resources"]["requests"]
    async with running(namespace, kubeconfig=service_account):
        created = await asyncio.to_thread(api.create, pods, pod)
        told = (await until(lambda: api.get(f"{pods}/web"), bound))["status"]["extendedResourceClaimStatus"]
        [mapping] = told["requestMappings"]
        assert mapping == {
            "containerName": created["spec"]["containers"][0]["name"],
            "resourceName": resource,
            "requestName": "container-0-request-0",
        }
        claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
        claim = await asyncio.to_thread(api.get, f"{claims}/{told['resourceClaimName']}")
        assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        [owner] = claim["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (created["metadata"]["uid"], True)
        [result] = claim["status"]["allocation"]["devices"]["results"]
        assert result["device"] == "x"


async def test_traces_attempts_allocates_devices_and_says_what_holds_a_pod_back(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, service_account: Path, gates: str
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})
    devices(api, namespace, f"{namespace}-n", "x", "g")
    selector = {"nodeSelector": {"for": namespace}}
    collector = Collector()
    tracing = {"endpoint": collector.endpoint, "samplingRatePerMillion": 1_000_000}

    def using_claim(name: str, claim: str) -> Any:
        return make_pod(name, namespace, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}], **selector)

    def condition() -> Any:
        conditions = api.get(f"{pods}/held")["status"].get("conditions", ())
        return next((each for each in conditions if each["type"] == "PodScheduled"), None)

    try:
        async with running(namespace, kubeconfig=service_account, gates=gates, tracing=tracing):
            await asyncio.to_thread(api.create, pods, using_claim("held", "absent"))
            await asyncio.to_thread(api.create, pods, using_claim("web", "g"))
            web = await until(lambda: api.get(f"{pods}/web"), bound)
            claim = await asyncio.to_thread(api.get, f"{RESOURCE}/namespaces/{namespace}/resourceclaims/g")
            assert [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]] == ["x"]
            assert [each["name"] for each in claim["status"]["reservedFor"]] == ["web"]
            await until(lambda: "SchedulePod" in collector.names)
            root = collector.named("SchedulePod")
            written = web["metadata"]["annotations"]["tracing.k8s.io/traceparent"]
            assert written == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"
            told = await until(condition)
            assert told["reason"] == "NotReadyForScheduling"
            assert told["message"] == "Waiting for resource claim 'absent' to be present"
    finally:
        collector.stop()
