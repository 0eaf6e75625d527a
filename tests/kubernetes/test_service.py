"""The scheduler on a real API server: Pods are bound, refusals are told, and it ends when it is asked to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from podtrail_scheduler.cluster.kubernetes.assembly import Plan
from podtrail_scheduler.cluster.kubernetes.service import Settings, run
from podtrail_scheduler.cluster.kubernetes.serving import Serving
from podtrail_scheduler.configuration.expansion import resolve
from podtrail_scheduler.configuration.features import parse_feature_gates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.plugins.registry import available, extension_points

pytestmark = pytest.mark.control_plane

DEADLINE = 60


def settings(kubeconfig: Path, name: str, gates: str = "", **configuration: Any) -> Settings:
    """A service whose one profile is `name`; without leader election unless that is configured."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": name, "plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}}],
    } | configuration
    features = parse_feature_gates([gates] if gates else [])
    read_configuration, source = read(json.dumps(document), "", features)
    check(read_configuration, features, source)
    makers = available()
    profiles = resolve(read_configuration, extension_points(makers), features, source)
    plan = Plan(read_configuration, profiles, makers, features)
    return Settings(plan, "0", serving=Serving("127.0.0.1", 0))


@asynccontextmanager
async def running(it: Settings) -> AsyncIterator[int]:
    """The port of a service that runs meanwhile; it must end within two seconds."""
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    service = asyncio.create_task(run(it, stop, started.set_result))
    await asyncio.wait((service, started), return_when=asyncio.FIRST_COMPLETED)
    if service.done():
        service.result()
    try:
        yield started.result()
    finally:
        stop.set()
        await asyncio.wait_for(service, DEADLINE)


async def until(read: Callable[[], Any], true: Callable[[Any], bool]) -> Any:
    """What `read` returns when it is `true`; read in a thread, again and again."""
    async with asyncio.timeout(DEADLINE):
        while not true(found := await asyncio.to_thread(read)):
            pass
    return found


def pod(name: str, scheduler: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0} | spec,
    }


def condition(of: Mapping[str, Any], kind: str = "PodScheduled") -> dict[str, Any]:
    found = [each for each in of["status"].get("conditions", ()) if each["type"] == kind]
    return found[0] if found else {}


def test_a_pod_is_bound_to_a_node_that_fits(control_plane: Any, namespace: str) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-small", {"cpu": "1"}, labels={"for": namespace})
    api.node(f"{namespace}-big", {"cpu": "8"}, labels={"for": namespace})

    async def test() -> None:
        async with running(settings(control_plane.kubeconfig, namespace)):
            await asyncio.to_thread(api.create, pods, pod("web", namespace, "2", nodeSelector={"for": namespace}))
            bound = await until(lambda: api.get(f"{pods}/web"), lambda it: "nodeName" in it["spec"])
            assert bound["spec"]["nodeName"] == f"{namespace}-big"
            assert condition(bound)["status"] == "True"

    asyncio.run(test())


def test_a_pod_that_fits_nowhere_is_told_why_and_bound_when_a_node_comes(control_plane: Any, namespace: str) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"

    async def test() -> None:
        async with running(settings(control_plane.kubeconfig, namespace)):
            wanted = pod("web", namespace, nodeSelector={"for": namespace})
            await asyncio.to_thread(api.create, pods, wanted)
            refused = await until(lambda: api.get(f"{pods}/web"), condition)
            assert condition(refused)["reason"] == "Unschedulable"
            assert "didn't match Pod's node affinity/selector" in condition(refused)["message"] or (
                condition(refused)["message"].startswith("no nodes available")
            )
            await asyncio.to_thread(api.node, f"{namespace}-n", labels={"for": namespace})
            await until(lambda: api.get(f"{pods}/web"), lambda it: it["spec"].get("nodeName") == f"{namespace}-n")

    asyncio.run(test())
