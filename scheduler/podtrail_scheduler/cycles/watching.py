"""Keeps cache and queue up to date with the watches, as kube-scheduler's event handlers; retries Pods that may fit."""

from collections.abc import Callable, Iterable

from podtrail_scheduler.api_dispatcher.dispatcher import APIDispatcher
from podtrail_scheduler.framework.clock import Signal
from podtrail_scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    POD_ADD,
    POD_DELETE,
    POD_UPDATE,
    ClusterEvent,
    Happening,
)
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.queueing.changes import (
    node_scheduling_properties_change,
    object_change,
    pod_scheduling_properties_change,
)
from podtrail_scheduler.queueing.queue import SchedulingQueue

from .cache import Cache
from .turns import Turns


class Watching:
    """Told of each change in the order of the watch; cache and queue follow when it is their turn."""

    def __init__(
        self, queue: SchedulingQueue, cache: Cache, handle: Handle, names: frozenset[str], turns: Turns
    ) -> None:
        """`names` are those of the profiles: Pods of other schedulers matter only when they are on a node."""
        self.queue = queue
        self.turns = turns
        self.cache = cache
        self.handle = handle
        self._names = names
        self._wanted: Signal | None = None
        self._woken = False
        self.dispatcher: APIDispatcher | None = None
        """Makes calls to the API server in the background; it is told what the watch shows of Pods."""
        self.on_handled: Callable[[ClusterEvent, int], None] | None = None
        """Told of each event that was worked in, and how many nanoseconds that took."""

    def wake(self) -> None:
        """Ends the wait of `something_to_do`: there may be a Pod to schedule."""
        self._woken = True
        if self._wanted is not None:
            self._wanted.set()

    async def something_to_do(self) -> None:
        """Returns when there may be a Pod to schedule: `wake` was called since this last returned."""
        if not self._woken:
            self._wanted = self.handle.clock.signal()
            await self._wanted.wait()
            self._wanted = None
        self._woken = False

    def pod_added(self, pod: Pod) -> None:
        """The watch shows a new Pod."""
        self.turns.soon(self._pod_added, pod)

    def pod_updated(self, old: Pod, new: Pod) -> None:
        """The watch shows a changed Pod; one that was bound leaves the queue, one that has ended is as good as gone."""
        if new.deletion_timestamp is not None:
            self._rejects_waiting(new)
        self.turns.soon(self._pod_updated, old, new)

    def pod_deleted(self, pod: Pod) -> None:
        """The watch shows that a Pod is gone."""
        self._rejects_waiting(pod)
        self.turns.soon(self._pod_deleted, pod)

    def node_added(self, node: Node) -> None:
        """The watch shows a new node."""
        self.turns.soon(self._node_added, node)

    def node_updated(self, old: Node, new: Node) -> None:
        """The watch shows a changed node."""
        self.turns.soon(self._node_updated, old, new)

    def node_deleted(self, node: Node) -> None:
        """The watch shows that a node is gone."""
        self.turns.soon(self._node_deleted, node)

    def object_changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        """The watch shows that an object of another kind came (no `old`), changed or went (no `new`).

        It can be looked up at once, so that who binds does not wait for it longer than needed.
        """
        if new is not None:
            self.handle.listers.put(new)
        elif old is not None:
            self.handle.listers.remove(old)
        event = object_change(old, new)
        if event is not None:
            self.turns.soon(self._move, event, old, new)

    def _pod_added(self, pod: Pod) -> None:
        if pod.terminated:
            return
        if pod.node_name:
            self.cache.set_pod(pod)
            self._move(ASSIGNED_POD_ADD, None, pod)
        elif pod.scheduler_name in self._names:
            began = self.handle.clock.now()
            self.queue.add(pod, began)
            self.wake()
            self._handled(POD_ADD, began)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.terminated:
            if not old.terminated:
                self._pod_deleted(old)
        elif old.uid != new.uid:
            self._pod_deleted(old)
            self._pod_added(new)
        elif not new.node_name:
            self._waiting_pod_updated(old, new)
        elif not old.node_name:
            if self.dispatcher is not None:
                self.dispatcher.forget(new.uid)
            began = self.handle.clock.now()
            self.queue.delete(new.uid)
            self._handled(POD_DELETE, began)
            self.cache.set_pod(new)
            self._move(ASSIGNED_POD_ADD, old, new)
        else:
            self.cache.set_pod(new)
            self._move_each(pod_scheduling_properties_change(old, new, target=False), old, new)

    def _pod_deleted(self, pod: Pod) -> None:
        if self.dispatcher is not None:
            self.dispatcher.forget(pod.uid)
        if pod.node_name:
            self.queue.delete(pod.uid)
            self.cache.remove_pod(pod.uid)
            self._move(ASSIGNED_POD_DELETE, pod, None)
            return
        began = self.handle.clock.now()
        self.queue.delete(pod.uid)
        self._handled(POD_DELETE, began)
        if self.cache.is_assumed(pod.uid):
            self._assumed_pod_goes(pod)
        elif pod.nominated_node_name:
            self._gives_up_nomination(pod)

    def _waiting_pod_updated(self, old: Pod, new: Pod) -> None:
        """A Pod that has no node in the API; it may be assumed on one."""
        if self.dispatcher is not None:
            self.dispatcher.sync(new)
        same = new.resource_version and new.resource_version == old.resource_version
        if new.scheduler_name not in self._names or same:
            return
        if self.cache.is_assumed(new.uid):
            if new.deletion_timestamp is not None and old.deletion_timestamp is None:
                self._assumed_pod_goes(new)
            return
        began = self.handle.clock.now()
        self.queue.update(old, new, began)
        self.wake()
        self._handled(POD_UPDATE, began)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            self._gives_up_nomination(old)

    def _assumed_pod_goes(self, pod: Pod) -> None:
        """Frees the room of a Pod that is deleted while it waits for permission or is bound."""
        assumed = self.cache.pod(pod.uid) or pod
        if not self._rejects_waiting(pod):
            self.cache.forget(pod.uid)
        self._move(ASSIGNED_POD_DELETE, assumed, None)

    def _rejects_waiting(self, pod: Pod) -> bool:
        """Ends the wait for permission of a Pod that goes, which is no turn's business; False when it does not wait."""
        waiting = self.handle.waiting.get(pod.uid)
        if waiting is None or pod.node_name:
            return False
        return waiting.reject("", "pod deleted") or (waiting.status is not None and not waiting.refused_by)

    def _gives_up_nomination(self, pod: Pod) -> None:
        """To Pods of its priority or less it is as if `pod` had left the node that it hoped for."""
        self.queue.move(
            Happening(ASSIGNED_POD_DELETE, pod, None),
            self.handle.clock.now(),
            lambda other: other.priority <= pod.priority,
        )
        self.wake()

    def _node_added(self, node: Node) -> None:
        self.cache.set_node(node)
        self._move(NODE_ADD, None, node)

    def _node_updated(self, old: Node, new: Node) -> None:
        self.cache.set_node(new)
        self._move_each(node_scheduling_properties_change(old, new), old, new)

    def _node_deleted(self, node: Node) -> None:
        self.cache.remove_node(node.name)
        self._move(NODE_DELETE, node, None)

    def _move_each(self, events: Iterable[ClusterEvent], old: ApiObject, new: ApiObject) -> None:
        for event in events:
            self._move(event, old, new)

    def _move(self, event: ClusterEvent, old: ApiObject | None, new: ApiObject | None) -> None:
        began = self.handle.clock.now()
        self.queue.move(Happening(event, old, new), began)
        self.wake()
        self._handled(event, began)

    def _handled(self, event: ClusterEvent, began: int) -> None:
        if self.on_handled is not None:
            self.on_handled(event, self.handle.clock.now() - began)
