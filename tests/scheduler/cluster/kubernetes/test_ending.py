"""The service ends, whatever has stopped answering."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytestmark = pytest.mark.control_plane


@asynccontextmanager
async def black_hole() -> AsyncIterator[str]:
    """The address of something that accepts connections and never says anything."""
    writers = []

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError):
            await reader.read()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in writers:
            writer.close()
        server.close()


async def test_it_ends_although_api_server_and_collector_hang(
    mortal_control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = mortal_control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n")
    election = {"leaderElect": True, "resourceNamespace": namespace, "resourceName": "scheduler"}

    async with (
        black_hole() as collector,
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
