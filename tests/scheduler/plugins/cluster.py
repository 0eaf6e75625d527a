"""Objects of a simulated API server for plugins that look them up and write them."""

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from podtrail_scheduler.cluster.simulated.object_store import ObjectStore
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.framework.client import Kind
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import FilterPlugin, PreFilterPlugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim

from tests.scheduler.plugins.unasked_client import UnaskedClient

REQUEST = 2_000_000
WATCH_DELAY = 1_000_000
Answer = TypeVar("Answer")


class PreFilteringPlugin(PreFilterPlugin, FilterPlugin, Protocol):
    """A filter that looks at the cluster first."""


class Cluster(UnaskedClient):
    """An API server's objects, the watch that shows them a little later, and plugins asked as the framework asks.

    It is the plugins' client as well, as far as they write.
    """

    def __init__(self) -> None:
        self.timeline = Timeline(0, "test")
        self.nodes: list[NodeInfo] = []
        self.pods: dict[str, Pod] = {}
        self.listers = Listers()
        self.objects = ObjectStore(self._told)
        self.handle = Handle(self.timeline, self, lambda: self.nodes, self.listers)

    def node(self, name: str, labels: dict[str, str] | None = None, *pods: Pod) -> NodeInfo:
        info = NodeInfo(Node(name, labels=labels or {}))
        for pod in pods:
            info.add(pod.on(name))
        self.nodes.append(info)
        return info

    def have(self, *objects: ApiObject) -> None:
        """They exist, and the watch has shown them."""
        for each in objects:
            self.objects.put(each)
        self.settle()

    def shown(self, kind: type[Kind], key: str) -> Kind:
        """The object as the watch last showed it, which it did."""
        item = self.listers.get(kind, key)
        assert item is not None
        return item

    def settle(self) -> None:
        """All that is under way happens."""
        while self.timeline.next_time() is not None:
            self.timeline.step()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What `work` returns, when all that it waited for has happened."""
        answers: list[Answer] = []

        async def keep() -> None:
            answers.append(await work)

        self.timeline.spawn(keep())
        self.settle()
        [answer] = answers
        return answer

    def begin(self, plugin: PreFilterPlugin, pod: Pod) -> tuple[CycleState, Status | None]:
        """The state after PreFilter, and its answer."""
        state = CycleState()
        answer = plugin.pre_filter(state, pod, self.nodes)
        assert answer is None or isinstance(answer, Status)
        return state, answer

    def refused(self, plugin: PreFilteringPlugin, pod: Pod) -> dict[str, str]:
        """Why Filter refuses which nodes."""
        state, answer = self.begin(plugin, pod)
        if answer == SKIP:
            return {}
        assert answer is None
        answers = {node.name: plugin.filter(state, pod, node) for node in self.nodes}
        return {name: status.message for name, status in answers.items() if status is not None}

    def get_pod(self, uid: str) -> Pod | None:
        return self.pods.get(uid)

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        await self.timeline.sleep(REQUEST)
        self.pods[pod.uid] = replace(pod, extended_claim=claim)

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        await self.timeline.sleep(REQUEST)
        return self.objects.create(manifest)

    async def delete_object(self, gone: ApiObject) -> None:
        await self.timeline.sleep(REQUEST)
        self.objects.remove(gone)

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:
        await self.timeline.sleep(REQUEST)
        return self.objects.patch(changed)

    def _told(self, old: ApiObject | None, new: ApiObject | None) -> None:
        def arrive() -> None:
            if new is not None:
                self.listers.put(new)
            elif old is not None:
                self.listers.remove(old)

        self.timeline.after(WATCH_DELAY, arrive)
