"""Whatever happens, each Pod is in one place, nobody is lost and nobody is stuck."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from podtrail_scheduler.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    Happening,
    Registration,
    hints_of,
)
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import MINUTE, SECOND
from podtrail_scheduler.queueing.queue import ProfileQueueing, SchedulingQueue, SchedulingQueueSettings


class Plugin:
    def __init__(self, name: str, resource: EventResource, action: ActionType) -> None:
        self.name = name
        self._event = ClusterEvent(resource, action)

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(self._event),)


class Gates(Plugin):
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable("gated") if pod.scheduling_gates else None


class QueueMachine(RuleBasedStateMachine):
    """Pods come, change, are tried and go in any order; events and time go by."""

    pop_from_backoff = True

    def __init__(self) -> None:
        super().__init__()
        gates = Gates("Gates", EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        hints = hints_of(
            [
                Plugin("Fit", EventResource.NODE, ActionType.ADD),
                Plugin("Ports", EventResource.POD, ActionType.DELETE),
                gates,
            ]
        )
        self.queue = SchedulingQueue(
            lambda entry: (-entry.pod.priority, entry.queued_at),
            {"default-scheduler": ProfileQueueing([gates], hints)},
            SchedulingQueueSettings(pop_from_backoff=self.pop_from_backoff),
        )
        self.now = 1_000 * SECOND
        self.born = 0
        self.alive: dict[str, Pod] = {}
        self.tried: dict[str, QueuedPod] = {}

    @rule(priority=st.integers(0, 2), gates=st.booleans())
    def arrives(self, priority: int, gates: bool) -> None:
        self.born += 1
        name = f"pod-{self.born}"
        pod = Pod(name, uid=name, priority=priority, scheduling_gates=("quota",) if gates else ())
        self.alive[name] = pod
        self.queue.add(pod, self.now)

    @rule()
    def is_tried(self) -> None:
        waiting = self.queue.pending()["active"]
        entry = self.queue.pop()
        if entry is not None:
            self.tried[entry.pod.uid] = entry
        if waiting:
            assert entry is not None
            assert entry.pod.priority == max(each.pod.priority for each in waiting)

    @rule(by=st.sampled_from([(), ("Fit",), ("Ports",), ("Fit", "Ports")]), pending=st.booleans())
    def is_refused(self, by: tuple[str, ...], pending: bool) -> None:
        if self.tried:
            uid = min(self.tried)
            entry = self.tried.pop(uid)
            entry.refused_by, entry.pending_on = frozenset(by), frozenset(by if pending else ())
            entry.pod = self.alive[uid]
            self.queue.give_back(entry, self.now)

    @rule()
    def is_bound(self) -> None:
        if self.tried:
            uid = max(self.tried)
            del self.tried[uid], self.alive[uid]
            self.queue.done(uid)

    @rule(which=st.integers(0, 99), gates=st.booleans(), priority=st.integers(0, 2))
    def changes(self, which: int, gates: bool, priority: int) -> None:
        if self.alive:
            uid = sorted(self.alive)[which % len(self.alive)]
            old = self.alive[uid]
            self.alive[uid] = new = replace(old, priority=priority, scheduling_gates=("quota",) if gates else ())
            self.queue.update(old, new, self.now)

    @rule(which=st.integers(0, 99))
    def is_deleted(self, which: int) -> None:
        waiting = sorted(self.alive.keys() - self.tried.keys())
        if waiting:
            uid = waiting[which % len(waiting)]
            del self.alive[uid]
            self.queue.delete(uid)

    @rule(action=st.sampled_from([ActionType.ADD, ActionType.DELETE]))
    def something_happens(self, action: ActionType) -> None:
        event = NODE_ADD if action is ActionType.ADD else ClusterEvent(EventResource.ASSIGNED_POD, action)
        self.queue.move(Happening(event, None, Node("n")), self.now)

    @rule(which=st.integers(0, 99))
    def is_activated(self, which: int) -> None:
        if self.alive:
            self.queue.activate([sorted(self.alive)[which % len(self.alive)]], self.now)

    @rule(milliseconds=st.integers(0, 400_000))
    def time_passes(self, milliseconds: int) -> None:
        self.now += milliseconds * SECOND // 1000
        self.queue.flush_backoff(self.now)
        self.queue.flush_unschedulable(self.now)

    @invariant()
    def each_pod_is_in_one_place(self) -> None:
        waiting = [entry.pod.uid for entries in self.queue.pending().values() for entry in entries]
        assert sorted([*waiting, *self.tried]) == sorted(self.alive)
        assert {name: len(entries) for name, entries in self.queue.pending().items()} == self.queue.lengths()

    @invariant()
    def the_pods_in_the_queue_are_the_latest(self) -> None:
        for entries in self.queue.pending().values():
            assert all(entry.pod == self.alive[entry.pod.uid] for entry in entries)

    @invariant()
    def refusals_are_counted_for_who_waits(self) -> None:
        counted = [len(entry.rejectors) for entries in self.queue.pending().values() for entry in entries]
        assert sum(self.queue.counts.rejections.values()) == sum(counted)
        assert min(self.queue.counts.rejections.values(), default=0) >= 0

    @invariant()
    def events_are_kept_only_for_pods_in_flight(self) -> None:
        assert self.queue.in_flight_events.get("PodPopped", 0) == len(self.tried)
        if not self.tried:
            assert not any(self.queue.in_flight_events.values())

    def teardown(self) -> None:
        """In the end everybody who is not gated gets another attempt."""
        self.queue.flush_unschedulable(self.now + 6 * MINUTE)
        self.queue.flush_backoff(self.now + 7 * MINUTE)
        due = {uid for uid in self.alive if uid not in self.tried}
        popped = set()
        while (entry := self.queue.pop()) is not None:
            popped.add(entry.pod.uid)
        stuck = due - popped
        assert stuck == {entry.pod.uid for entry in self.queue.pending()["gated"]}
        assert all(self.alive[uid].scheduling_gates for uid in stuck)


class QueueMachineWithoutPopFromBackoff(QueueMachine):
    pop_from_backoff = False


_SETTINGS = settings(max_examples=60, stateful_step_count=30, deadline=None)

TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = _SETTINGS
TestQueueMachineWithoutPopFromBackoff = QueueMachineWithoutPopFromBackoff.TestCase
TestQueueMachineWithoutPopFromBackoff.settings = _SETTINGS
