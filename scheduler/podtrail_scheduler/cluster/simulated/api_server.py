
"""The API server of the simulation: the objects, who is told of changes, and the answers to requests.

Pods run once they are bound, for their lifetime, then they are gone; a Pod that is deleted takes its grace first.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from podtrail_scheduler.client import ApiError, Kind, PodCondition
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.queueing.events import ApiObject

from .object_store import ObjectStore
from .timeline import Timeline

WATCH_DELAY = 1_000_000
"""After how many nanoseconds the scheduler hears of a change."""
REQUEST = 2_000_000
"""How many nanoseconds a request in the background takes to arrive."""


class Watcher(Protocol):
    """Who is told of changes."""

    def pod_added(self, pod: Pod) -> None: ...
    def pod_updated(self, old: Pod, new: Pod) -> None: ...
    def pod_deleted(self, pod: Pod) -> None: ...
    def node_added(self, node: Node) -> None: ...
    def node_updated(self, old: Node, new: Node) -> None: ...
    def object_changed(self, old: ApiObject | None, new: ApiObject | None) -> None: ...


class PodPlan:
    """What the simulation knows about a Pod beyond the API's object: durations in nanoseconds."""

    __slots__ = ("grace", "lifetime", "refusal", "refusals_left")

    def __init__(self, lifetime: int | None, grace: int, refusals_left: int, refusal: str) -> None:
        self.lifetime = lifetime
        self.grace = grace
        self.refusals_left = refusals_left
        self.refusal = refusal


class SimulatedApiServer:
    """Answers at once and tells the watcher a little later; `bind` takes the caller's time."""

    def __init__(self, timeline: Timeline, bind_takes: int) -> None:
        self._timeline = timeline
        self._bind_takes = bind_takes
        self._pods: dict[str, Pod] = {}
        self._plans: dict[str, PodPlan] = {}
        self._nodes: dict[str, Node] = {}
        self.objects = ObjectStore(lambda old, new: self._tell(lambda watcher: watcher.object_changed(old, new)))
        """Those other than Pods and Nodes."""
        self.watcher: Watcher | None = None
        self.bound = 0
        self.finished = 0
        self.preempted = 0

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The Pods that exist, by uid."""
        return self._pods

    def create_pod(self, pod: Pod, plan: PodPlan) -> None:
        """Somebody created a Pod."""
        self._pods[pod.uid] = pod
        self._plans[pod.uid] = plan
        self._tell(lambda watcher: watcher.pod_added(pod))

    def lift_gates(self, uid: str) -> None:
        """Somebody removed the Pod's scheduling gates."""
        if uid in self._pods:
            self._change(replace(self._pods[uid], scheduling_gates=()))

    def add_node(self, node: Node) -> None:
        """A node joined."""
        self._nodes[node.name] = node
        self._tell(lambda watcher: watcher.node_added(node))

    def uncordon(self, name: str) -> None:
        """Somebody made a node schedulable."""
        old = self._nodes[name]
        self._nodes[name] = new = replace(old, unschedulable=False)
        self._tell(lambda watcher: watcher.node_updated(old, new))

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod, None when it is gone."""
        return self._pods.get(uid)

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds `pod`; ApiError when it is gone, going or bound, or refused by admission."""
        await self._timeline.sleep(self._bind_takes)
        current = self._pods.get(pod.uid)
        if current is None:
            raise ApiError(f'pods "{pod.name}" not found', "NotFound", 404)
        if current.deletion_timestamp is not None or current.node_name:
            why = f"already assigned to node {current.node_name!r}" if current.node_name else "being deleted"
            raise ApiError(
                f'Operation cannot be fulfilled on pods/binding "{pod.name}": pod {pod.name} is {why}', "Conflict", 409
            )
        plan = self._plans[pod.uid]
        if plan.refusals_left:
            plan.refusals_left -= 1
            raise ApiError(f'pods "{pod.name}" is forbidden: {plan.refusal}', "Forbidden", 403)
        self._bound(pod.uid, node_name, annotations)

    async def delete_pod(self, pod: Pod) -> None:
        """Has the Pod terminate."""
        await self._timeline.sleep(REQUEST)
        self._terminate(pod.uid)

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Writes the condition and the nomination."""
        await self._timeline.sleep(REQUEST)
        current = self._pods.get(pod.uid)
        if current is None:
            raise ApiError(f'pods "{pod.name}" not found', "NotFound", 404)
        new = current
        if condition is not None:
            new = replace(new, conditions={**new.conditions, condition.type: condition[1:]})
        if nominated_node is not None and not new.node_name:
            new = replace(new, nominated_node_name=nominated_node)
        if new != current:
            self._change(new)

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:  # noqa: ARG002
        """Writes `changed` if nobody else has written meanwhile."""
        await self._timeline.sleep(REQUEST)
        return self.objects.patch(changed)

    def _bound(self, uid: str, node_name: str, annotations: Mapping[str, str]) -> None:
        pod = self._pods[uid]
        self.bound += 1
        self._change(replace(pod.on(node_name), annotations={**pod.annotations, **annotations}))
        lifetime = self._plans[uid].lifetime
        if lifetime is not None:
            self._timeline.after(lifetime, lambda: self._finish(uid))

    def _finish(self, uid: str) -> None:
        if uid in self._pods:
            self.finished += 1
            self._remove(uid)

    def _terminate(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is None or pod.deletion_timestamp is not None:
            return
        self.preempted += 1
        grace = self._plans[uid].grace
        self._change(replace(pod, deletion_timestamp=self._timeline.now() + grace))
        self._timeline.after(grace, lambda: self._remove(uid))

    def _remove(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            del self._plans[uid]
            self._tell(lambda watcher: watcher.pod_deleted(pod))

    def _change(self, new: Pod) -> None:
        old = self._pods[new.uid]
        self._pods[new.uid] = new
        self._tell(lambda watcher: watcher.pod_updated(old, new))

    def _tell(self, news: Callable[[Watcher], None]) -> None:
        def arrive() -> None:
            assert self.watcher is not None
            news(self.watcher)

        self._timeline.after(WATCH_DELAY, arrive)
