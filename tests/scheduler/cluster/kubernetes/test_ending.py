"""The service ends in time, whatever has stopped answering."""

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


def test_it_ends_within_two_seconds_when_api_server_and_collector_hang(
    start_control_plane: Any, running: Any, until: Any, make_pod: Any
) -> None:
    plane = start_control_plane()
    api, pods = plane.api, "/api/v1/namespaces/default/pods"
    api.node("n")
    election = {"leaderElect": True, "resourceNamespace": "default", "resourceName": "scheduler"}

    async def test() -> None:
        async with (
            black_hole() as collector,
            running(
                "second",
                kubeconfig=plane.kubeconfig,
                gates="SchedulerTracing=true",
                leaderElection=election,
                tracing={"endpoint": collector, "samplingRatePerMillion": 1_000_000},
            ) as service,
        ):
            await asyncio.to_thread(api.create, pods, make_pod("web", "second"))
            await until(lambda: api.get(f"{pods}/web"), lambda pod: pod["spec"].get("nodeName"))
            plane.signal("kube-apiserver", signal.SIGSTOP)
            loop = asyncio.get_running_loop()
            start = loop.time()
            service.stop.set()
            await service.ended()
            assert loop.time() - start < 2

    try:
        asyncio.run(test())
    finally:
        plane.signal("kube-apiserver", signal.SIGCONT)
        plane.stop()
