"""What the scheduler does when the cluster changes: keeps its cache and queue right, and retries who may fit now."""

from collections.abc import Callable, Iterable

from .api_dispatcher.dispatcher import APIDispatcher
from .cache import Cache
from .framework.clock import Signal
from .framework.handle import Handle
from .objects import Node, Pod
from .queueing.changes import node_scheduling_properties_change, pod_scheduling_properties_change
from .queueing.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    POD_ADD,
    POD_DELETE,
    POD_UPDATE,
    ApiObject,
    ClusterEvent,
    Happening,
)
from .queueing.object_changes import object_change
from .queueing.queue import SchedulingQueue


class Watching:
    """Told of each change in the order of the watch."""

    def __init__(self, queue: SchedulingQueue, cache: Cache, handle: Handle, names: frozenset[str]) -> None:
        """`names` are those of the profiles: Pods of other schedulers matter only when they are on a node."""
        self.queue = queue
        self.cache = cache
        self.handle = handle
        self._names = names
        self._wanted: Signal | None = None
        self.dispatcher: APIDispatcher | None = None
        """Makes calls to the API server in the background; it is told what the watch shows of Pods."""
        self.on_handled: Callable[[ClusterEvent, int], None] | None = None
        """Told of each event that was worked in, and how many nanoseconds that took."""

    def wake(self) -> None:
        """There may be a Pod to schedule."""
        if self._wanted is not None:
            self._wanted.set()

    async def something_to_do(self) -> None:
        """Returns when there may be a Pod to schedule."""
        self._wanted = self.handle.clock.signal()
        await self._wanted.wait()
        self._wanted = None

    def pod_added(self, pod: Pod) -> None:
        """The watch shows a new Pod."""
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

    def pod_updated(self, old: Pod, new: Pod) -> None:
        """The watch shows a changed Pod; one that was bound leaves the queue, one that has ended is as good as gone."""
        if new.terminated:
            if not old.terminated:
                self.pod_deleted(old)
        elif old.uid != new.uid:
            self.pod_deleted(old)
            self.pod_added(new)
        elif not new.node_name:
            if self.dispatcher is not None:
                self.dispatcher.sync(new)
            if new.scheduler_name in self._names and not self.cache.is_assumed(new.uid):
                began = self.handle.clock.now()
                self.queue.update(old, new, began)
                self.wake()
                self._handled(POD_UPDATE, began)
        elif not old.node_name:
            if self.dispatcher is not None:
                self.dispatcher.forget(new.uid)
            self.queue.delete(new.uid)
            self.cache.set_pod(new)
            self._move(ASSIGNED_POD_ADD, old, new)
        else:
            self.cache.set_pod(new)
            self._move_each(pod_scheduling_properties_change(old, new, target=False), old, new)

    def pod_deleted(self, pod: Pod) -> None:
        """The watch shows that a Pod is gone."""
        began = self.handle.clock.now()
        if self.dispatcher is not None:
            self.dispatcher.forget(pod.uid)
        self.queue.delete(pod.uid)
        if not pod.node_name:
            self._handled(POD_DELETE, began)
        if pod.node_name:
            self.cache.remove_pod(pod.uid)
            self._move(ASSIGNED_POD_DELETE, pod, None)
        waiting = self.handle.waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "pod deleted")

    def node_added(self, node: Node) -> None:
        """The watch shows a new node."""
        self.cache.set_node(node)
        self._move(NODE_ADD, None, node)

    def node_updated(self, old: Node, new: Node) -> None:
        """The watch shows a changed node."""
        self.cache.set_node(new)
        self._move_each(node_scheduling_properties_change(old, new), old, new)

    def node_deleted(self, node: Node) -> None:
        """The watch shows that a node is gone."""
        self.cache.remove_node(node.name)
        self._move(NODE_DELETE, node, None)

    def object_changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        """The watch shows that an object of another kind came (no `old`), changed or went (no `new`)."""
        if new is not None:
            self.handle.listers.put(new)
        elif old is not None:
            self.handle.listers.remove(old)
        event = object_change(old, new)
        if event is not None:
            self._move(event, old, new)

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
