"""Events that come while Pods are being tried."""

from dataclasses import replace

from podtrail_scheduler.framework.events import NODE_ADD, Happening
from podtrail_scheduler.objects import Node

from tests.scheduler.queueing.bench import QueueBench


def test_an_event_during_the_attempt_is_not_missed(bench: QueueBench, start: int, node_added: Happening) -> None:
    bench.add()
    entry = bench.pop()
    bench.queue.move(node_added, start)
    bench.give_back(entry)
    assert bench.place() == "backoff"


def test_an_event_before_the_attempt_does_not_count_for_it(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add("a")
    bench.add("b", start + 1)
    first = bench.pop()
    bench.queue.move(node_added, start)
    bench.refuse()
    assert bench.place("b") == "unschedulable"
    bench.give_back(first)
    assert bench.place("a") == "backoff"


def test_an_event_is_not_missed_after_others_were_forgotten(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add("a")
    bench.pop()
    for _ in range(3):
        bench.queue.move(node_added, start)
    bench.queue.done("a")
    bench.add("b")
    entry = bench.pop()
    bench.queue.move(node_added, start)
    bench.give_back(entry)
    assert bench.place("b") == "backoff"


def test_a_pending_plugin_that_was_hopeful_meanwhile_spares_the_backoff(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add()
    entry = bench.pop()
    bench.queue.move(Happening(NODE_ADD, None, Node("node-1")), start)
    bench.queue.move(node_added, start)
    bench.give_back(entry, by=["Faulty"], pending=["Fit"])
    assert bench.place() == "active"


def test_activation_during_the_attempt_is_not_missed(bench: QueueBench, start: int) -> None:
    for name in "ab":
        bench.add(name)
    first, second = bench.pop(), bench.pop()
    bench.queue.activate(["a"], start)
    bench.give_back(first)
    bench.give_back(second)
    assert (bench.place("a"), bench.place("b")) == ("backoff", "unschedulable")


def test_a_change_of_the_pod_itself_during_the_attempt_is_not_missed(bench: QueueBench, start: int) -> None:
    pod = bench.add(scheduling_gates=())
    entry = bench.pop()
    gated = replace(pod, scheduling_gates=("quota",))
    bench.queue.update(gated, pod, start)
    bench.give_back(entry, by=["SchedulingGates"])
    assert bench.place() == "backoff"


def test_events_are_kept_only_as_long_as_somebody_needs_them(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    for name in "abc":
        bench.add(name)
    bench.pop()
    bench.queue.move(node_added, start)
    bench.pop()
    bench.queue.move(node_added, start)
    bench.pop()
    bench.queue.done("b")
    assert bench.queue.in_flight_events == {"PodPopped": 2, "NodeAdd": 2}
    bench.queue.done("a")
    assert bench.queue.in_flight_events == {"PodPopped": 1, "NodeAdd": 0}
    bench.queue.done("c")
    bench.queue.move(node_added, start)
    assert bench.queue.in_flight_events == {"PodPopped": 0, "NodeAdd": 0}


def test_being_done_twice_is_once(bench: QueueBench) -> None:
    bench.add()
    bench.pop()
    bench.queue.done("a")
    bench.queue.done("a")
    assert bench.queue.in_flight_events == {"PodPopped": 0}


def test_a_pod_that_is_in_flight_already_is_not_popped_again(bench: QueueBench, start: int) -> None:
    pod = bench.add()
    bench.pop()
    bench.queue.add(pod, start)
    bench.add("b", start + 1)
    assert bench.pop().pod.name == "b"
    assert bench.queue.pop() is None
