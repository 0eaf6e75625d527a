from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.framework.client import ApiError, Client
from podtrail_scheduler.framework.clock import Signal
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Node, Pod

from tests.scheduler.plugins.unasked_client import UnaskedClient

MIB = 1024**2
ROOM = {"cpu": 4000, "memory": 4000 * MIB, "pods": 10}


class Still:
    """A clock that stands."""

    def now(self) -> int:
        return 10**9

    async def sleep(self, duration: int) -> None:
        raise NotImplementedError

    def signal(self) -> Signal:
        raise NotImplementedError

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        raise NotImplementedError

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Costs nothing."""


class Binding(UnaskedClient):
    """An API server that binds Pods, or refuses to."""

    def __init__(self) -> None:
        self.refusal: ApiError | None = None
        self.bound: list[tuple[str, str, Mapping[str, str]]] = []

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.bound.append((pod.name, node_name, annotations))


@pytest.fixture
def api() -> Binding:
    return Binding()


@pytest.fixture(scope="session")
def handle_of() -> Callable[..., Handle]:
    """What a plugin on these nodes is given."""

    def make(*nodes: NodeInfo, client: Client | None = None) -> Handle:
        return Handle(Still(), client or UnaskedClient(), lambda: nodes)

    return make


@pytest.fixture(scope="session")
def handle(handle_of: Callable[..., Handle]) -> Handle:
    """For plugins that look at no other nodes than they are given."""
    return handle_of()


@pytest.fixture(scope="session")
def node() -> Callable[..., NodeInfo]:
    """A node with room for 4 cores, 4000 MiB and 10 Pods unless told otherwise, and Pods on it."""

    def make(name: str = "n1", *pods: Pod, **fields: Any) -> NodeInfo:
        info = NodeInfo(Node(name, **{"allocatable": ROOM, **fields}))
        for number, each in enumerate(pods):
            info.add(replace(each, uid=f"{name}-{number}", node_name=name))
        return info

    return make
