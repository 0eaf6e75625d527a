from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.client import ApiError, PodCondition
from podtrail_scheduler.framework.clock import Signal
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Node, Pod

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


class Binding:
    """An API server that binds Pods, or refuses to."""

    def __init__(self) -> None:
        self.refusal: ApiError | None = None
        self.bound: list[tuple[str, str, Mapping[str, str]]] = []

    def get_pod(self, uid: str) -> Pod | None:
        raise NotImplementedError

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.bound.append((pod.name, node_name, annotations))

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        raise NotImplementedError

    async def delete_pod(self, pod: Pod) -> None:
        raise NotImplementedError


@pytest.fixture
def api() -> Binding:
    return Binding()


@pytest.fixture(scope="session")
def handle_of() -> Callable[..., Handle]:
    """What a plugin on these nodes is given."""
    return lambda *nodes, client=None: Handle(Still(), client or Binding(), lambda: nodes)


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
