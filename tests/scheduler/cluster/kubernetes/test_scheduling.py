"""The scheduler on a real API server: Pods are bound, refusals are told, and it ends when it is asked to."""

import asyncio
import threading
from typing import Any

import aiohttp
import pytest

pytestmark = pytest.mark.control_plane


def scheduled(pod: Any) -> dict[str, Any]:
    """The condition PodScheduled, empty when there is none."""
    found = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return found[0] if found else {}


async def test_a_pod_is_bound_to_a_node_that_fits(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-small", {"cpu": "1"}, labels={"for": namespace})
    api.node(f"{namespace}-big", {"cpu": "8"}, labels={"for": namespace})
    wanted = make_pod("web", namespace, "2", nodeSelector={"for": namespace})

    async with running(namespace):
        await asyncio.to_thread(api.create, pods, wanted)
        bound = await until(lambda: api.get(f"{pods}/web"), lambda pod: "nodeName" in pod["spec"])
        assert bound["spec"]["nodeName"] == f"{namespace}-big"
        assert scheduled(bound)["status"] == "True"


async def test_a_pod_that_fits_nowhere_is_told_why_and_bound_when_a_node_comes(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-other")
    wanted = make_pod("web", namespace, nodeSelector={"for": namespace})

    async with running(namespace):
        await asyncio.to_thread(api.create, pods, wanted)
        refused = await until(lambda: api.get(f"{pods}/web"), scheduled)
        assert scheduled(refused)["reason"] == "Unschedulable"
        assert "node(s) didn't match Pod's node affinity/selector" in scheduled(refused)["message"]
        await asyncio.to_thread(api.node, f"{namespace}-n", labels={"for": namespace})
        bound = await until(lambda: api.get(f"{pods}/web"), lambda pod: "nodeName" in pod["spec"])
        assert bound["spec"]["nodeName"] == f"{namespace}-n"


async def test_pods_of_other_schedulers_are_left_alone(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n")

    async with running(namespace) as service:
        await asyncio.to_thread(api.create, pods, make_pod("theirs", "somebody-else"))
        await asyncio.to_thread(api.create, pods, make_pod("ours", namespace))
        await until(lambda: api.get(f"{pods}/ours"), lambda pod: "nodeName" in pod["spec"])
        assert "nodeName" not in (await asyncio.to_thread(api.get, f"{pods}/theirs"))["spec"]
        assert {attempt.pod.name for attempt in service.attempts} <= {"ours"}


async def test_victims_make_room_for_a_pod_of_higher_priority(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", {"cpu": "1"}, labels={"for": namespace})
    high = {"metadata": {"name": namespace}, "value": 1000}
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", high)
    selector = {"nodeSelector": {"for": namespace}}

    async with running(namespace):
        await asyncio.to_thread(api.create, pods, make_pod("low", namespace, "1", **selector))
        await until(lambda: api.get(f"{pods}/low"), lambda pod: "nodeName" in pod["spec"])
        urgent = make_pod("high", namespace, "1", priorityClassName=namespace, **selector)
        await asyncio.to_thread(api.create, pods, urgent)
        await until(lambda: api.get(f"{pods}/high"), lambda pod: "nodeName" in pod["spec"])
        left = await asyncio.to_thread(api.get, pods)
        assert [pod["metadata"]["name"] for pod in left["items"]] == ["high"]


async def test_probes_and_metrics_are_served(control_plane: Any, namespace: str, running: Any) -> None:
    async with running(namespace) as service, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{service.port}"
        for path in ("healthz", "livez", "metrics"):
            async with session.get(f"{url}/{path}") as answer:
                assert answer.status == 200
        async with asyncio.timeout(120):
            while True:
                async with session.get(f"{url}/readyz?verbose") as answer:
                    text = await answer.text()
                    if answer.status == 200:
                        break
        assert text.splitlines() == ["[+]ping ok", "[+]informer-sync ok", "readyz check passed"]


async def test_it_ends_also_while_it_binds(control_plane: Any, namespace: str, running: Any, make_pod: Any) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n")
    binding = threading.Event()

    class Never:
        name = "Never"

        def __init__(self, *_: object) -> None:
            """Needs nothing."""

        async def pre_bind(self, *_: object) -> None:
            binding.set()
            await asyncio.Event().wait()

    async with running(namespace, plugins={"Never": Never}) as service:
        await asyncio.to_thread(api.create, pods, make_pod("web", namespace))
        assert await asyncio.to_thread(binding.wait, 120)
        service.stop.set()
        await service.ended()
