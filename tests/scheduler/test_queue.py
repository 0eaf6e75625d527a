"""The scheduling queue: back-off, the unschedulable pool, hints, gates."""

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from podtrail_scheduler.durations import MINUTE, SECOND
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.queueing.entry import QueuedPod
from podtrail_scheduler.queueing.events import NODE_ADD, Happening, Hint
from podtrail_scheduler.queueing.queue import SchedulingQueue

NODE_ADDED = Happening(NODE_ADD, None, Node("node-9"))


def likes_node_9(pod: Pod, happening: Happening) -> Hint:
    return Hint.QUEUE if isinstance(happening.new, Node) and happening.new.name == "node-9" else Hint.SKIP


def gated(pod: Pod) -> tuple[str, Status] | None:
    return ("SchedulingGates", unresolvable("waiting")) if pod.scheduling_gates else None


def make_queue() -> SchedulingQueue:
    hints = {NODE_ADD: [("Fit", likes_node_9)]}
    return SchedulingQueue(lambda entry: (-entry.pod.priority, entry.queued_at), gated, hints)


@pytest.fixture
def queue() -> SchedulingQueue:
    return make_queue()


def pod(name: str = "a", **fields: object) -> Pod:
    return Pod(name=name, uid=name, **fields)  # type: ignore[arg-type]


def popped(queue: SchedulingQueue) -> QueuedPod:
    entry = queue.pop()
    assert entry is not None
    return entry


def refuse(queue: SchedulingQueue, now: int, by: Sequence[str] = ("Fit",)) -> QueuedPod:
    """Tries the next Pod and gives it back."""
    entry = popped(queue)
    entry.refused_by = frozenset(by)
    queue.give_back(entry, now)
    return entry


def place(queue: SchedulingQueue) -> str:
    [name] = [name for name, entries in queue.pending().items() if entries]
    return name


def test_the_highest_priority_is_first_then_who_waited_longest(queue: SchedulingQueue) -> None:
    for at, name, priority in ((1, "late", 0), (0, "early", 0), (2, "important", 9)):
        queue.add(pod(name, priority=priority), at)
    assert [popped(queue).pod.name for _ in range(3)] == ["important", "early", "late"]
    assert queue.pop() is None


def test_backoff_is_a_second_doubled_each_time_up_to_ten(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    waits = []
    for _ in range(6):
        entry = refuse(queue, now=0)
        waits.append(queue.backoff_ends(entry) // SECOND)
        queue.move(NODE_ADDED, now=0)
        queue.flush_backoff(queue.backoff_ends(entry))
    assert waits == [1, 2, 4, 8, 10, 10]


def test_errors_back_off_by_the_number_of_errors_in_a_row(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    entry = popped(queue)
    entry.attempts, entry.errors = 7, 1
    queue.give_back(entry, 0)
    assert (place(queue), queue.backoff_ends(entry)) == ("backoff", SECOND)


def test_a_refused_pod_waits_until_its_plugin_is_hopeful(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    refuse(queue, now=0)
    queue.move(Happening(NODE_ADD, None, Node("node-1")), now=1)
    assert place(queue) == "unschedulable"
    queue.move(NODE_ADDED, now=2)
    assert place(queue) == "backoff"
    queue.flush_backoff(SECOND)
    assert place(queue) == "active"


def test_hints_of_plugins_that_did_not_refuse_it_count_for_nothing(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    refuse(queue, now=0, by=["Ports"])
    queue.move(NODE_ADDED, now=2)
    assert place(queue) == "unschedulable"


def test_after_its_backoff_an_event_makes_a_pod_active_at_once(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    refuse(queue, now=0)
    queue.move(NODE_ADDED, now=SECOND)
    assert place(queue) == "active"


def test_an_event_during_the_attempt_is_not_missed(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    entry = popped(queue)
    queue.move(NODE_ADDED, now=1)
    entry.refused_by = frozenset(["Fit"])
    queue.give_back(entry, now=2)
    assert place(queue) == "backoff"


def test_an_event_before_the_attempt_does_not_count_for_it(queue: SchedulingQueue) -> None:
    queue.add(pod("a"), 0)
    queue.add(pod("b"), 1)
    first = popped(queue)
    queue.move(NODE_ADDED, now=2)
    refuse(queue, now=3)
    assert place(queue) == "unschedulable"
    queue.done(first.pod.uid)


def test_a_pending_plugin_spares_the_backoff(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    entry = popped(queue)
    entry.refused_by = entry.pending_on = frozenset(["Fit"])
    queue.give_back(entry, now=0)
    queue.move(NODE_ADDED, now=1)
    assert place(queue) == "active"


def test_the_unschedulable_pool_is_flushed_after_five_minutes(queue: SchedulingQueue) -> None:
    queue.add(pod(), 0)
    refuse(queue, now=0)
    queue.flush_unschedulable(5 * MINUTE)
    assert place(queue) == "unschedulable"
    queue.flush_unschedulable(5 * MINUTE + 30 * SECOND)
    assert place(queue) == "active"


def test_a_gated_pod_waits_until_its_gates_are_lifted(queue: SchedulingQueue) -> None:
    queue.add(pod(scheduling_gates=("quota",)), 0)
    queue.move(NODE_ADDED, now=1)
    queue.flush_unschedulable(10 * MINUTE)
    assert place(queue) == "gated"
    queue.update(pod(), now=11 * MINUTE)
    entry = popped(queue)
    assert (entry.attempts, entry.gated, entry.active_since) == (1, False, 11 * MINUTE)


def test_a_deleted_pod_is_forgotten_wherever_it_is(queue: SchedulingQueue) -> None:
    for name, gates in (("a", ()), ("b", ("quota",)), ("c", ())):
        queue.add(pod(name, scheduling_gates=gates), 0)
    refuse(queue, now=0)
    for name in "abc":
        queue.delete(name)
    assert not any(queue.pending().values())
    assert queue.pop() is None


class QueueMachine(RuleBasedStateMachine):
    """Whatever happens, each Pod is in one place and nobody is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = make_queue()
        self.now = 0
        self.alive: set[str] = set()
        self.tried: dict[str, QueuedPod] = {}

    @rule(priority=st.integers(0, 2), gates=st.booleans())
    def arrives(self, priority: int, gates: bool) -> None:
        name = f"pod-{len(self.alive)}-{self.now}"
        self.alive.add(name)
        self.queue.add(pod(name, priority=priority, scheduling_gates=("quota",) if gates else ()), self.now)
        self.now += 1

    @rule()
    def is_tried(self) -> None:
        entry = self.queue.pop()
        if entry is not None:
            self.tried[entry.pod.uid] = entry

    @rule(plugins=st.sampled_from([(), ("Fit",), ("Ports",)]))
    def is_refused(self, plugins: tuple[str, ...]) -> None:
        if self.tried:
            uid = min(self.tried)
            entry = self.tried.pop(uid)
            entry.refused_by = frozenset(plugins)
            self.queue.give_back(entry, self.now)

    @rule()
    def is_bound(self) -> None:
        if self.tried:
            uid = max(self.tried)
            del self.tried[uid]
            self.alive.remove(uid)
            self.queue.done(uid)

    @rule()
    def something_happens(self) -> None:
        self.queue.move(NODE_ADDED, self.now)

    @rule(seconds=st.integers(0, 400))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * SECOND
        self.queue.flush_backoff(self.now)
        self.queue.flush_unschedulable(self.now)

    @invariant()
    def each_pod_is_in_one_place(self) -> None:
        waiting = [entry.pod.uid for entries in self.queue.pending().values() for entry in entries]
        assert sorted([*waiting, *self.tried]) == sorted(self.alive)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
