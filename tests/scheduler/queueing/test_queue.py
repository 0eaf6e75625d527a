"""The scheduling queue: who is next, who waits where, what brings them back."""

import logging
from dataclasses import replace

import pytest
from podtrail_scheduler.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    Happening,
)
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import MINUTE, SECOND
from podtrail_scheduler.queueing.queue import SchedulingQueue

from tests.scheduler.queueing.bench import QueueBench


def test_the_highest_priority_is_first_then_who_waited_longest(bench: QueueBench, start: int) -> None:
    for at, name, priority in ((1, "late", 0), (0, "early", 0), (2, "important", 9)):
        bench.add(name, start + at, priority=priority)
    assert [bench.pop().pod.name for _ in range(3)] == ["important", "early", "late"]
    assert bench.queue.pop() is None


def test_a_refused_pod_waits_until_its_plugin_is_hopeful(bench: QueueBench, start: int, node_added: Happening) -> None:
    bench.add()
    bench.refuse()
    bench.queue.move(Happening(NODE_ADD, None, Node("node-1")), start + 1)
    assert bench.place() == "unschedulable"
    bench.queue.move(node_added, start + 2)
    assert bench.place() == "backoff"


def test_hints_of_plugins_that_did_not_refuse_it_count_for_nothing(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add()
    bench.refuse(by=["Ports"])
    bench.queue.move(node_added, start)
    assert bench.place() == "unschedulable"


def test_a_hint_that_fails_brings_the_pod_back(bench: QueueBench, start: int, node_added: Happening) -> None:
    bench.add()
    bench.refuse(by=["Faulty"])
    bench.queue.move(node_added, start)
    assert bench.place() == "backoff"


def test_any_event_helps_against_a_plugin_that_registers_none(bench: QueueBench, start: int) -> None:
    bench.add()
    bench.refuse(by=["Quiet"])
    bench.queue.move(Happening(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD), None, None), start)
    assert bench.place() == "backoff"


def test_an_event_for_some_pods_leaves_the_others(bench: QueueBench, start: int, node_added: Happening) -> None:
    for name, priority in (("low", 1), ("high", 2)):
        bench.add(name, priority=priority)
    bench.refuse()
    bench.refuse()
    bench.queue.move(node_added, start, lambda pod: pod.priority <= 1)
    assert (bench.place("low"), bench.place("high")) == ("backoff", "unschedulable")


def test_after_its_backoff_an_event_makes_a_pod_active_at_once(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add()
    bench.refuse()
    bench.queue.move(node_added, start + 2 * SECOND)
    assert bench.place() == "active"


def test_a_pending_plugin_spares_the_backoff(bench: QueueBench, start: int, node_added: Happening) -> None:
    bench.add()
    bench.refuse(by=[], pending=["Fit"])
    bench.queue.move(node_added, start)
    assert bench.place() == "active"


def test_a_hopeful_plugin_that_is_not_the_pending_one_does_not_spare_it(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add()
    bench.refuse(by=["Fit"], pending=["Ports"])
    bench.queue.move(node_added, start)
    assert bench.place() == "backoff"


def test_a_pending_plugin_spares_the_backoff_whoever_else_is_hopeful(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add()
    bench.refuse(by=["Fit"], pending=["Faulty"])
    bench.queue.move(node_added, start)
    assert bench.place() == "active"


def test_who_was_refused_first_comes_back_first_whoever_refused_it(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    for name in "abcd":
        bench.add(name)
    entries = [bench.pop() for _ in "abcd"]
    for entry, by in zip(entries, ("Faulty", "Fit", "Faulty", "Fit"), strict=True):
        bench.give_back(entry, by=[by])
    bench.queue.move(node_added, start + 2 * SECOND)
    assert [bench.pop().pod.name for _ in "abcd"] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("pop_from_backoff", [False, True])
def test_an_update_of_several_things_brings_a_pod_back_once(
    make_bench: type[QueueBench], start: int, *, pop_from_backoff: bool
) -> None:
    bench = make_bench(pop_from_backoff=pop_from_backoff)
    pod = bench.add(requests={"cpu": 2})
    bench.refuse(by=["Quiet"])
    bench.queue.update(pod, replace(pod, requests={"cpu": 1}, labels={"app": "web"}), start)
    assert bench.place() == "backoff"
    assert bench.queue.counts.incoming["backoff", "TargetPodUpdatePodLabel"] == 1
    assert bench.queue.counts.incoming["backoff", "TargetPodUpdatePodScaleDown"] == 0


def test_the_first_attempt_is_remembered_through_all_others(bench: QueueBench, start: int) -> None:
    bench.add(at=start)
    entry = bench.refuse()
    bench.queue.activate(["a"], start + SECOND)
    assert (entry.initial_attempt, entry.active_since) == (start, start + SECOND)


def test_a_flush_is_forgotten_with_the_next_refusal(bench: QueueBench, start: int) -> None:
    bench.add()
    bench.refuse()
    bench.queue.flush_unschedulable(start + 6 * MINUTE)
    assert not bench.refuse(start + 6 * MINUTE).flushed


def test_who_hopes_for_a_node_is_told_of_all_that_waits() -> None:
    class Told:
        def __init__(self) -> None:
            self.calls: list[tuple[Pod | None, Pod] | str] = []

        def observe(self, old: Pod | None, new: Pod) -> None:
            self.calls.append((old, new))

        def withdraw(self, uid: str) -> None:
            self.calls.append(uid)

    told = Told()
    queue = SchedulingQueue(lambda entry: (entry.queued_at,), {}, nominations=told)
    old = Pod("a", uid="a")
    new = replace(old, priority=1)
    queue.add(old, 0)
    queue.update(old, new, 1)
    queue.delete("a")
    assert told.calls == [(None, old), (old, new), "a"]


def test_the_unschedulable_pool_is_flushed_after_five_minutes(bench: QueueBench, start: int) -> None:
    bench.add()
    entry = bench.refuse()
    bench.queue.flush_unschedulable(start + 5 * MINUTE)
    assert bench.place() == "unschedulable"
    bench.queue.flush_unschedulable(start + 5 * MINUTE + 30 * SECOND)
    assert bench.place() == "active"
    assert entry.flushed


def test_a_gated_pod_waits_until_its_gates_are_lifted(bench: QueueBench, start: int, node_added: Happening) -> None:
    pod = bench.add(scheduling_gates=("quota",))
    bench.queue.move(node_added, start + 1)
    bench.queue.flush_unschedulable(start + 10 * MINUTE)
    assert bench.place() == "gated"
    bench.queue.update(pod, replace(pod, scheduling_gates=()), start + 11 * MINUTE)
    entry = bench.pop()
    assert (entry.attempts, entry.gated, entry.active_since) == (1, False, start + 11 * MINUTE)


def test_an_event_that_its_gating_plugin_did_not_register_leaves_a_gated_pod_unasked(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add(scheduling_gates=("quota",))
    asked = bench.gates.asked
    bench.queue.move(node_added, start)
    bench.queue.move(Happening(ASSIGNED_POD_DELETE, Pod("b"), None), start)
    assert bench.gates.asked == asked


def test_a_deleted_pod_is_forgotten_wherever_it_is(bench: QueueBench, start: int, node_added: Happening) -> None:
    for name, gates in (("a", ()), ("b", ()), ("c", ("quota",)), ("d", ())):
        bench.add(name, scheduling_gates=gates)
    bench.refuse()
    bench.queue.move(node_added, start)
    bench.refuse()
    for name in "abcd":
        bench.queue.delete(name)
    assert not any(bench.queue.pending().values())
    assert bench.queue.pop() is None
    assert not any(bench.queue.counts.rejections.values())


def test_a_changed_pod_is_the_one_that_is_tried(bench: QueueBench, start: int) -> None:
    pod = bench.add()
    bench.queue.update(pod, replace(pod, labels={"app": "web"}), start)
    assert bench.pop().pod.labels == {"app": "web"}


def test_a_pod_whose_priority_rose_in_the_queue_overtakes(bench: QueueBench, start: int) -> None:
    bench.add("first", priority=1)
    second = bench.add("second", start + 1)
    bench.queue.update(second, replace(second, priority=2), start)
    assert [bench.pop().pod.name for _ in range(2)] == ["second", "first"]


def test_an_update_of_an_unknown_pod_adds_it(bench: QueueBench, start: int) -> None:
    pod = Pod("a", uid="a")
    bench.queue.update(pod, pod, start)
    assert bench.place() == "active"


def test_activation_spares_the_backoff_and_the_wait_for_an_event(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    for name in "ab":
        bench.add(name)
    bench.refuse()
    bench.queue.move(node_added, start)
    bench.refuse()
    assert (bench.place("a"), bench.place("b")) == ("backoff", "unschedulable")
    bench.queue.activate(["a", "b", "unknown"], start)
    assert (bench.place("a"), bench.place("b")) == ("active", "active")


def test_a_pod_that_was_queued_again_meanwhile_stays_where_it_is(
    bench: QueueBench, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    pod = bench.add()
    entry = bench.pop()
    bench.queue.done("a")
    bench.queue.update(pod, replace(pod, deletion_timestamp=1), start)
    bench.give_back(entry)
    assert bench.place() == "active"
    assert bench.pop().pod.deletion_timestamp == 1
    assert [record.getMessage() for record in caplog.records] == [
        '"Error occurred" err="Pod default/a is already present in the queue"'
    ]


def test_counts_who_entered_which_queue_by_which_event(bench: QueueBench, start: int, node_added: Happening) -> None:
    bench.add("g", scheduling_gates=("quota",))
    bench.add()
    bench.refuse()
    bench.queue.move(node_added, start)
    bench.pop()
    assert bench.queue.counts.incoming == {
        ("unschedulable", "UnscheduledPodAdd"): 1,
        ("active", "UnscheduledPodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "PopFromBackoffQ"): 1,
    }
    # Without those that came where the hints had meant them to go.
    assert bench.queue.counts.incoming_entities == {
        ("unschedulable", "UnscheduledPodAdd", "pod"): 1,
        ("active", "UnscheduledPodAdd", "pod"): 1,
        ("active", "PopFromBackoffQ", "pod"): 1,
    }


def test_counts_the_pods_that_each_plugin_refuses(bench: QueueBench, start: int) -> None:
    bench.add("g", scheduling_gates=("quota",))
    bench.add("a")
    bench.add("b")
    first = bench.pop()
    second = bench.pop()
    bench.give_back(first, by=["Fit", "Ports"])
    bench.give_back(second, by=["Fit"])
    assert +bench.queue.counts.rejections == {
        ("SchedulingGates", "default-scheduler"): 1,
        ("Fit", "default-scheduler"): 2,
        ("Ports", "default-scheduler"): 1,
    }
    bench.queue.activate(["a"], start)
    bench.pop()
    assert bench.queue.counts.rejections["Ports", "default-scheduler"] == 0
    assert bench.queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}


def test_logs_what_kube_scheduler_logs_at_its_verbosities(
    bench: QueueBench, start: int, node_added: Happening, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO - 5, logger="podtrail_scheduler.queueing"):
        bench.add("g", scheduling_gates=("quota",))
        bench.add()
        bench.refuse()
        bench.queue.move(Happening(NODE_ADD, None, Node("node-1")), start)
        bench.queue.move(node_added, start)
    status = 'status="UnschedulableAndUnresolvable: gated"'
    moved = '"Entity moved to an internal scheduling queue" type="pod" entity="default/a"'
    gated = '"Entity moved to an internal scheduling queue, because it is gated" type="pod" entity="default/g"'
    assert [(logging.INFO - record.levelno, record.getMessage()) for record in caplog.records] == [
        (4, f'"Status after running PreEnqueue plugin" pod="default/g" plugin="SchedulingGates" {status}'),
        (5, f'{gated} event="UnscheduledPodAdd" queue="Unschedulable"'),
        (5, f'{moved} event="UnscheduledPodAdd" queue="Active"'),
        (
            3,
            (
                '"Pod moved to an internal scheduling queue" pod="default/a" event="ScheduleAttemptFailure" '
                'queue="Unschedulable" schedulingCycle=1 hint=0 unschedulable plugins={"Fit": {}}'
            ),
        ),
        (5, '"Event is not making entity schedulable" entity="default/a" event="NodeAdd"'),
        (5, f'{moved} event="NodeAdd" queue="Backoff"'),
    ]
