"""A network that loses the answer to a binding: the Pod is bound once, and its place is counted once."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.control_plane


class Proxy:
    """Passes bytes on between the scheduler and the API server, until it is told not to."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._writers: list[asyncio.StreamWriter] = []
        self._served: set[asyncio.Task[Any]] = set()
        self._mute = False

    def mute(self) -> None:
        """From now on requests arrive and answers are lost."""
        self._mute = True

    def cut(self) -> None:
        """Closes all connections; new ones are as good as ever."""
        self._mute = False
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def ended(self) -> None:
        """Returns when all connections are closed."""
        await asyncio.gather(*self._served, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        there, back = await asyncio.open_connection("127.0.0.1", self._upstream)
        self._writers += [writer, back]
        said = 0

        async def requests() -> None:
            nonlocal said
            while data := await reader.read(65536):
                said += 1
                back.write(data)
                await back.drain()
            back.close()

        async def answers() -> None:
            while data := await there.read(65536):
                if not self._mute or said == 1:  # hands are shaken also when mute
                    writer.write(data)
                    await writer.drain()
            writer.close()

        with suppress(ConnectionError):
            await asyncio.gather(requests(), answers())


@asynccontextmanager
async def proxied(control_plane: Any, folder: Path) -> AsyncIterator[tuple[Proxy, Path]]:
    """A proxy, and a kubeconfig of the administrator that leads through it."""
    proxy = Proxy(control_plane.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    config = json.loads(control_plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        yield proxy, path
    finally:
        server.close()
        proxy.cut()
        await proxy.ended()


async def test_a_binding_whose_answer_is_lost_counts_once(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, tmp_path: Path
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", {"cpu": "1"}, labels={"for": namespace})
    selector = {"nodeSelector": {"for": namespace}}
    reached, go = threading.Event(), threading.Event()

    class Hold:
        name = "Hold"

        def __init__(self, *_: object) -> None:
            """Needs nothing."""

        def pre_bind(self, *_: object) -> None:
            reached.set()
            assert go.wait(120)

    def refused(name: str) -> bool:
        conditions = api.get(f"{pods}/{name}")["status"].get("conditions", ())
        return any("Insufficient cpu" in each.get("message", "") for each in conditions)

    async with (
        proxied(control_plane, tmp_path) as (proxy, kubeconfig),
        running(namespace, kubeconfig=kubeconfig, plugins={"Hold": Hold}) as service,
    ):
        await asyncio.to_thread(api.create, pods, make_pod("web", namespace, "1", **selector))
        assert await asyncio.to_thread(reached.wait, 120)
        proxy.mute()
        go.set()
        await until(lambda: api.get(f"{pods}/web")["spec"].get("nodeName"))
        proxy.cut()
        await asyncio.to_thread(api.create, pods, make_pod("next", namespace, "1", **selector))
        await until(lambda: refused("next"))
        await asyncio.to_thread(api.delete, f"{pods}/web")
        await until(lambda: api.get(f"{pods}/next")["spec"].get("nodeName"))
        assert next(each.result for each in service.attempts if each.pod.name == "web") == "Success"
