"""A queue of one profile with a plugin `Fit` that likes node-9, and PreEnqueue by scheduling gates."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from podtrail_scheduler.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    Happening,
    Hint,
    Hinting,
    Registration,
    hints_of,
)
from podtrail_scheduler.framework.extension_points import PreEnqueuePlugin
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.queueing.pre_enqueue import PreEnqueueReporter
from podtrail_scheduler.queueing.queue import ProfileQueueing, SchedulingQueue, SchedulingQueueSettings

START = 1_000 * SECOND
NODE_ADDED = Happening(NODE_ADD, None, Node("node-9"))


class Fit:
    name = "Fit"

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(ClusterEvent(EventResource.NODE, ActionType.ADD), self.likes_node_9),)

    def likes_node_9(self, pod: Pod, happening: Happening) -> Hint:
        return Hint.QUEUE if isinstance(happening.new, Node) and happening.new.name == "node-9" else Hint.SKIP


class Ports:
    """Interested in the removal of Pods, whichever."""

    name = "Ports"

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(ClusterEvent(EventResource.POD, ActionType.DELETE)),)


class Faulty:
    name = "Faulty"

    def events_to_register(self) -> Sequence[Registration]:
        def fails(pod: Pod, happening: Happening) -> Hint:
            raise ValueError("expected something else")

        return (Registration(ClusterEvent(EventResource.NODE, ActionType.ADD), fails),)


class Gates:
    name = "SchedulingGates"

    def __init__(self) -> None:
        self.asked = 0

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked += 1
        return unresolvable("gated") if pod.scheduling_gates else None


class GatingPlugin(PreEnqueuePlugin, Hinting, Protocol):
    """Holds Pods back, and says which events may change its mind."""


class QueueBench:
    """A queue with what tests do to it again and again."""

    def __init__(
        self, plugins: Sequence[GatingPlugin] = (), reporter: PreEnqueueReporter | None = None, **settings: Any
    ) -> None:
        self.gates = Gates()
        pre_enqueue: list[PreEnqueuePlugin] = [self.gates, *plugins]
        hinting: list[Hinting] = [Fit(), Ports(), Faulty(), self.gates, *plugins]
        self.queue = SchedulingQueue(
            lambda entry: (-entry.pod.priority, entry.queued_at),
            {"default-scheduler": ProfileQueueing(pre_enqueue, hints_of(hinting, ["Quiet"]))},
            SchedulingQueueSettings(**settings),
            reporter=reporter,
        )

    def add(self, name: str = "a", at: int = START, **fields: Any) -> Pod:
        pod = Pod(name=name, uid=name, **fields)
        self.queue.add(pod, at)
        return pod

    def pop(self) -> QueuedPod:
        entry = self.queue.pop()
        assert entry is not None
        return entry

    def give_back(
        self, entry: QueuedPod, at: int = START, by: Iterable[str] = ("Fit",), pending: Iterable[str] = ()
    ) -> QueuedPod:
        entry.refused_by, entry.pending_on = frozenset(by), frozenset(pending)
        self.queue.give_back(entry, at)
        return entry

    def refuse(self, at: int = START, by: Iterable[str] = ("Fit",), pending: Iterable[str] = ()) -> QueuedPod:
        """Tries the next Pod and gives it back."""
        return self.give_back(self.pop(), at, by, pending)

    def place(self, uid: str = "a") -> str:
        [place] = [name for name, entries in self.queue.pending().items() if uid in [each.pod.uid for each in entries]]
        return place
