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
        assert scheduled(bound)["status"] == "True"


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
