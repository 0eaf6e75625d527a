"""The service ends, whatever has stopped answering."""

import asyncio
import signal
from typing import Any

import pytest

from tests.scheduler.collector import silent_endpoint

pytestmark = pytest.mark.control_plane


async def test_it_ends_although_api_server_and_collector_hang(
    mortal_control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = mortal_control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n")
    election = {"leaderElect": True, "resourceNamespace": namespace, "resourceName": "scheduler"}

    async with (
        silent_endpoint() as collector,
        running(
            namespace,
            gates="SchedulerTracing=true",
            leaderElection=election,
            tracing={"endpoint": collector, "samplingRatePerMillion": 1_000_000},
        ) as service,
    ):
        await asyncio.to_thread(api.create, pods, make_pod("web", namespace))
        await until(lambda: api.get(f"{pods}/web"), lambda pod: pod["spec"].get("nodeName"))
        mortal_control_plane.signal("kube-apiserver", signal.SIGSTOP)
        service.stop.set()
        await service.ended()
