import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pytest
from podtrail_scheduler.configuration.args import DefaultPreemptionArgs
from podtrail_scheduler.framework.client import ApiError, PodCondition
from podtrail_scheduler.framework.clock import Signal
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import FilterPlugin, PostFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unschedulable
from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.plugins.node_ports import NodePorts
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.preemption import DefaultPreemption

from tests.scheduler.plugins.unasked_client import UnaskedClient

SHORT = unschedulable("Insufficient cpu")
NOW = 10**18
Answer = TypeVar("Answer")


class Event(asyncio.Event):
    async def wait(self, timeout: int | None = None) -> bool:  # type: ignore[override]  # noqa: ASYNC109
        return await super().wait()


class Background:
    """A clock that stands, and what was begun in the background until it is run."""

    def __init__(self) -> None:
        self.work: list[Coroutine[Any, Any, None]] = []
        self.running: asyncio.TaskGroup | None = None

    def now(self) -> int:
        return NOW

    async def sleep(self, duration: int) -> None:
        raise NotImplementedError

    def signal(self) -> Signal:
        return Event()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self.running is None:
            self.work.append(work)
        else:
            self.running.create_task(work)

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Costs nothing."""

    def run(self) -> None:
        while self.work:
            asyncio.run(self.with_others(self.work.pop(0)))

    async def with_others(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What `work` returns, when all that it has begun in the background is over."""
        async with asyncio.TaskGroup() as self.running:
            main = self.running.create_task(work)
        self.running = None
        return main.result()


class Requests(UnaskedClient):
    """An API server that writes down what it is asked, and can refuse."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.log: list[tuple[Any, ...]] = []
        self.refusals: dict[str, ApiError] = {}
        self.watch: Any = None
        """Called with the name of each Pod that is deleted, before the request returns."""

    def get_pod(self, uid: str) -> Pod | None:
        return self.pods.get(uid)

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        self.log.append(("patch", pod.name, condition, nominated_node))

    async def delete_pod(self, pod: Pod) -> None:
        if pod.name in self.refusals:
            raise self.refusals[pod.name]
        self.log.append(("delete", pod.name))
        self.pods.pop(pod.uid, None)
        if self.watch is not None:
            self.watch(pod.name)

    @property
    def deleted(self) -> list[str]:
        return [entry[1] for entry in self.log if entry[0] == "delete"]


class Measures:
    """Counts."""

    def __init__(self) -> None:
        self.attempts = 0
        self.victims: list[int] = []

    def preemption_attempt(self) -> None:
        self.attempts += 1

    def preemption_victims(self, number: int) -> None:
        self.victims.append(number)

    def claim_creation(self, result: str) -> None:
        raise AssertionError(result)


class Cluster:
    """Nodes of 4 cores and 10 Pods, and the plugin on them with the filters of resources and ports."""

    def __init__(self, args: DefaultPreemptionArgs | None = None) -> None:
        self.nodes: list[NodeInfo] = []
        self.client = Requests()
        self.clock = Background()
        self.events: list[tuple[str, str]] = []
        self.activated: list[str] = []
        self.handle = Handle(self.clock, self.client, lambda: self.nodes)
        self.handle.event = self._event
        self.handle.activate = self._activate
        self.measures = Measures()
        self.handle.measures = self.measures
        filters: list[FilterPlugin] = [NodePorts(self.handle), NodeResourcesFit(self.handle)]
        self.handle.trial.serve(self.handle.nominator, filters, ())
        self.plugin = DefaultPreemption(self.handle, args)

    def node(self, name: str, *pods: Pod) -> NodeInfo:
        info = NodeInfo(Node(name, allocatable={"cpu": 4000, "pods": 10}))
        for each in pods:
            bound = each.on(name)
            info.add(bound)
            self.client.pods[each.uid] = bound
        self.nodes.append(info)
        return info

    def try_for(self, pod: Pod, refusals: Mapping[str, Status] | None = None) -> PostFilterResult:
        """What becomes of `pod`, which no node takes (for want of cpu unless told otherwise)."""
        self.client.pods.setdefault(pod.uid, pod)
        state = CycleState()
        answer = self.plugin.post_filter(state, pod, refusals or {node.name: SHORT for node in self.nodes})
        return asyncio.run(answer if self.handle.async_preemption else self.clock.with_others(answer))

    def preempt(self, pod: Pod) -> tuple[str | None, list[str]]:
        """The nominated node and whom it cost."""
        result = self.try_for(pod)
        self.clock.run()
        return result.nominated_node, self.client.deleted

    def _event(
        self, regarding: ApiObject, related: ApiObject | None, kind: str, reason: str, action: str, note: str
    ) -> None:
        assert (kind, reason, action) == ("Normal", "Preempted", "Preempting")
        assert related is not None
        self.events.append((regarding.key, note))

    def _activate(self, pods: Sequence[Pod]) -> None:
        self.activated += [pod.name for pod in pods]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """No nodes yet; what a test has left in the background is not begun any more."""
    made = Cluster()
    yield made
    for work in made.clock.work:
        work.close()


@pytest.fixture(scope="session")
def new_cluster() -> type[Cluster]:
    """For tests that need several or another configuration."""
    return Cluster
