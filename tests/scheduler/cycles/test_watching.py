"""What the scheduler makes of changes to Pods that hope for a node, or are assumed on one."""

from dataclasses import replace

from podtrail_scheduler.objects import Node
from podtrail_scheduler.objects.durations import SECOND

from tests.scheduler.bench import Bench, pod

SMALL = Node("n1", allocatable={"cpu": 1000, "pods": 10})


def full() -> Bench:
    """A node without room, and `second`, which was refused there."""
    bench = Bench(nodes=[SMALL], bind_takes=SECOND)
    bench.attempt(pod("first"))
    bench.attempt(pod("second"))
    assert bench.scheduler.queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    return bench


def test_a_pod_that_is_deleted_while_it_is_bound_frees_its_room_at_once() -> None:
    bench = Bench(nodes=[SMALL], bind_takes=60 * SECOND)
    bench.create(pod("first"))
    bench.step_until(lambda: bench.pods_on("n1") == ["first"])
    bench.scheduler.pod_deleted(pod("first"))
    assert bench.pods_on("n1") == []


def test_a_pod_that_begins_to_terminate_while_it_is_bound_frees_its_room_at_once() -> None:
    bench = Bench(nodes=[SMALL], bind_takes=60 * SECOND)
    bench.create(pod("first"))
    bench.step_until(lambda: bench.pods_on("n1") == ["first"])
    bench.scheduler.pod_updated(pod("first"), replace(pod("first"), deletion_timestamp=1))
    assert bench.pods_on("n1") == []


def test_pods_of_no_higher_priority_are_tried_again_when_a_nomination_is_given_up() -> None:
    bench = full()
    hoping = pod("hoping", priority=5, nominated_node_name="n1")
    bench.scheduler.pod_updated(hoping, replace(hoping, nominated_node_name=""))
    assert bench.scheduler.queue.lengths()["unschedulable"] == 0


def test_pods_of_no_higher_priority_are_tried_again_when_a_nominated_pod_is_gone() -> None:
    bench = full()
    bench.scheduler.pod_deleted(pod("hoping", priority=-1, nominated_node_name="n1"))
    assert bench.scheduler.queue.lengths()["unschedulable"] == 1
    bench.scheduler.pod_deleted(pod("hoping", priority=0, nominated_node_name="n1"))
    assert bench.scheduler.queue.lengths()["unschedulable"] == 0


def test_an_update_that_changes_nothing_is_none() -> None:
    bench = full()
    bench.scheduler.queue.delete("second")
    seen = pod("second", resource_version="7")
    bench.scheduler.pod_updated(seen, seen)
    assert "second" not in bench.scheduler.queue
