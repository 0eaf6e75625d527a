"""What an API server does not have, or says it has not, is looked for again; no cluster."""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from aiohttp import web
from podtrail_kubernetes.rest_client import RestClient
from podtrail_scheduler.cluster.kubernetes.informers import Informers, WatchedKind

from tests.kubernetes.test_rest_client import served, status

NODES = WatchedKind("v1", "nodes", "Node")
CLASSES = WatchedKind("resource.k8s.io/v1", "deviceclasses", "DeviceClass")
NODE = {"metadata": {"name": "n1", "uid": "u1", "resourceVersion": "1"}}
CLASS = {"metadata": {"name": "gpu", "uid": "u2", "resourceVersion": "1"}, "spec": {}}


class Seen:
    """Notes what comes."""

    def __init__(self) -> None:
        self.nodes, self.others = asyncio.Event(), asyncio.Event()

    def node_added(self, _: Any) -> None:
        self.nodes.set()

    def object_changed(self, _: Any, __: Any) -> None:
        self.others.set()

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize("nonsense", [404, 503, "{}", '{"resources": [1]}'])
async def test_what_an_api_server_denies_at_first_is_found_later(nonsense: int | str) -> None:
    asked: Counter[str] = Counter()
    ended = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked[request.path] += 1
        if "watch" in request.query:
            await ended.wait()
        if asked[request.path] == 1:
            return status(nonsense, "") if isinstance(nonsense, int) else web.Response(text=nonsense)
        match request.path:
            case "/api/v1/nodes":
                items = {"kind": "NodeList", "apiVersion": "v1", "items": [NODE]}
            case "/apis/resource.k8s.io/v1":
                return web.json_response({"resources": [{"name": "deviceclasses"}]})
            case _:
                items = {"kind": "DeviceClassList", "apiVersion": "resource.k8s.io/v1", "items": [CLASS]}
        return web.json_response(items | {"metadata": {"resourceVersion": "1"}})

    seen = Seen()
    async with served(answer) as url:
        rest = await RestClient.open(master=url, agent="tests")
        informers = Informers(rest, Random(1), look_again=0.01)
        running = asyncio.create_task(informers.run(seen, [NODES, CLASSES]))
        await seen.nodes.wait()
        await seen.others.wait()
        await informers.wait_for_sync()
        ended.set()
        running.cancel()
        await asyncio.wait([running])
        await rest.close()
