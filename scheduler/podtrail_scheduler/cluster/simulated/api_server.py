"""The API server of the simulation: the objects, who is told of changes, and the answers to requests.

Pods run once they are bound, for their lifetime, then they are gone; a Pod that is deleted takes its grace first.
"""

from collections.abc import Mapping
from typing import Any

from podtrail_scheduler.framework.client import ApiError, Kind, PodCondition
from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim

from .api_faults import ApiFaults
from .object_store import ObjectStore
from .timeline import Timeline
from .watch import Watch

REQUEST = 2_000_000
"""How many nanoseconds a request in the background takes to arrive."""


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

    def __init__(self, timeline: Timeline, bind_takes: int, faults: ApiFaults | None = None) -> None:
        self._timeline = timeline
        self._bind_takes = bind_takes
        self._faults = faults or ApiFaults((), timeline, "")
        self.watch = Watch(timeline)
        self._pods: dict[str, Pod] = {}
        self._plans: dict[str, PodPlan] = {}
        self._nodes: dict[str, Node] = {}
        self.objects = ObjectStore(self.watch.tell)
        """Those other than Pods and Nodes."""
        self.bound = 0
        self.finished = 0
        self.preempted = 0
        self.deleted = 0
        """Pods that somebody deleted or that went with their node."""

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The Pods that exist, by uid."""
        return self._pods

    def create_pod(self, pod: Pod, plan: PodPlan) -> None:
        """Somebody created a Pod."""
        self._pods[pod.uid] = pod
        self._plans[pod.uid] = plan
        self.watch.tell(None, pod)

    def lift_gates(self, uid: str) -> None:
        """Somebody removed the Pod's scheduling gates."""
        if uid in self._pods:
            self._change(self._pods[uid].changed(scheduling_gates=()))

    def add_node(self, node: Node) -> None:
        """A node joined."""
        self._nodes[node.name] = node
        self.watch.tell(None, node)

    def node(self, name: str) -> Node | None:
        """The node of that name as it is now."""
        return self._nodes.get(name)

    def nodes(self) -> list[Node]:
        """All nodes as they are now."""
        return [*self._nodes.values()]

    def change_node(self, new: Node) -> None:
        """Somebody changed a node."""
        old = self._nodes[new.name]
        self._nodes[new.name] = new
        self.watch.tell(old, new)

    def remove_node(self, name: str) -> None:
        """Somebody deleted a node; its Pods are for `evict`."""
        self.watch.tell(self._nodes.pop(name), None)

    def evict(self, node_name: str) -> None:
        """The Pods of a node are deleted at once, as they are where no kubelet answers."""
        for pod in [pod for pod in self._pods.values() if pod.node_name == node_name]:
            self.deleted += 1
            self._remove(pod.uid)

    def delete(self, uid: str) -> None:
        """Somebody deletes a Pod: at once where it does not run, with its grace where it does."""
        pod = self._pods.get(uid)
        if pod is None or pod.deletion_timestamp is not None:
            return
        self.deleted += 1
        if pod.node_name:
            self._terminate(uid)
        else:
            self._remove(uid)

    def bind_elsewhere(self, uid: str, node_name: str) -> None:
        """Another scheduler binds a Pod, if nobody has yet."""
        pod = self._pods.get(uid)
        if pod is not None and not pod.node_name and pod.deletion_timestamp is None:
            self._bound(uid, node_name, {})

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it."""
        return self.watch.shown(uid)

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds `pod`.

        Raises:
            ApiError: it is gone, going or bound, or refused by admission.
        """
        lost = await self._faults.ahead("bind", pod.name)
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
        if lost:
            raise self._faults.lost("bind")

    async def delete_pod(self, pod: Pod) -> None:
        """Has the Pod terminate."""
        lost = await self._faults.ahead("delete", pod.name)
        await self._timeline.sleep(REQUEST)
        current = self._pods.get(pod.uid)
        if current is not None and current.deletion_timestamp is None:
            self.preempted += 1
            self._terminate(pod.uid)
        if lost:
            raise self._faults.lost("delete")

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Writes the condition and the nomination.

        Raises:
            ApiError: the Pod is gone, or a fault is played.
        """
        lost = await self._faults.ahead("patchStatus", pod.name)
        await self._timeline.sleep(REQUEST)
        current = self._pods.get(pod.uid)
        if current is None:
            raise ApiError(f'pods "{pod.name}" not found', "NotFound", 404)
        new = current
        if condition is not None:
            new = new.changed(conditions={**new.conditions, condition.type: condition[1:]})
        if nominated_node is not None and not new.node_name:
            new = new.changed(nominated_node_name=nominated_node)
        if new != current:
            self._change(new)
        if lost:
            raise self._faults.lost("patchStatus")

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        """Takes a condition out of the status.

        Raises:
            ApiError: the Pod is gone.
        """
        await self._timeline.sleep(REQUEST)
        current = self._pods.get(pod.uid)
        if current is None:
            raise ApiError(f'pods "{pod.name}" not found', "NotFound", 404)
        if condition in current.conditions:
            kept = {name: said for name, said in current.conditions.items() if name != condition}
            self._change(current.changed(conditions=kept))

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        """Writes which claim was made for extended resources of the Pod.

        Raises:
            ApiError: the Pod is gone.
        """
        await self._timeline.sleep(REQUEST)
        current = self._pods.get(pod.uid)
        if current is None:
            raise ApiError(f'pods "{pod.name}" not found', "NotFound", 404)
        self._change(current.changed(extended_claim=claim))

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        """Creates an object other than a Pod or Node."""
        await self._timeline.sleep(REQUEST)
        return self.objects.create(manifest)

    async def delete_object(self, gone: ApiObject) -> None:
        """Deletes an object other than a Pod or Node."""
        await self._timeline.sleep(REQUEST)
        self.objects.remove(gone)

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:  # noqa: ARG002
        """Writes `changed` if nobody else has written meanwhile."""
        await self._timeline.sleep(REQUEST)
        return self.objects.patch(changed)

    def _bound(self, uid: str, node_name: str, annotations: Mapping[str, str]) -> None:
        pod = self._pods[uid]
        self.bound += 1
        self._change(pod.on(node_name).changed(annotations={**pod.annotations, **annotations}))
        lifetime = self._plans[uid].lifetime
        if lifetime is not None:
            self._timeline.after(lifetime, lambda: self._finish(uid))

    def _finish(self, uid: str) -> None:
        if uid in self._pods:
            self.finished += 1
            self._remove(uid)

    def _terminate(self, uid: str) -> None:
        grace = self._plans[uid].grace
        self._change(self._pods[uid].changed(deletion_timestamp=self._timeline.now() + grace))
        self._timeline.after(grace, lambda: self._remove(uid))

    def _remove(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            del self._plans[uid]
            self.watch.tell(pod, None)

    def _change(self, new: Pod) -> None:
        old = self._pods[new.uid]
        self._pods[new.uid] = new
        self.watch.tell(old, new)
