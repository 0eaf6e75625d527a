"""PreEnqueue: who gates a Pod, and what is told of it (KEP-5501)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Registration
from podtrail_scheduler.framework.status import Status, unschedulable
from podtrail_scheduler.objects import Pod

from tests.scheduler.queueing.bench import QueueBench

CLAIM_ADDED = Happening(ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.ADD), None, None)


class Claims:
    """Holds Pods back as long as it has a reason."""

    name = "Claims"
    reason = "waiting for a claim"

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.ADD)),)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable(self.reason) if self.reason else None


class Reporter:
    def __init__(self) -> None:
        self.told: list[str] = []

    def rejected(self, pod: Pod, message: str, now: int) -> None:
        self.told.append(message)

    def passed(self, pod: Pod, now: int) -> None:
        self.told.append("passed")


@pytest.fixture
def claims() -> Claims:
    return Claims()


@pytest.fixture
def reporter() -> Reporter:
    return Reporter()


@pytest.fixture
def held(make_bench: type[QueueBench], claims: Claims, reporter: Reporter) -> QueueBench:
    return make_bench([claims], reporter=reporter)


def test_an_event_of_the_gating_plugin_lets_the_pod_pass(held: QueueBench, claims: Claims, start: int) -> None:
    held.add()
    assert held.place() == "gated"
    claims.reason = ""
    held.queue.move(CLAIM_ADDED, start)
    assert held.place() == "active"


def test_a_pod_freed_by_one_plugin_may_be_held_by_the_next(held: QueueBench, start: int) -> None:
    pod = held.add(scheduling_gates=("quota",))
    held.queue.update(pod, replace(pod, scheduling_gates=()), start)
    [entry] = held.queue.pending()["gated"]
    assert (entry.gating_plugin, entry.refused_by) == ("Claims", frozenset({"Claims", "SchedulingGates"}))
    assert +held.queue.counts.rejections == {
        ("Claims", "default-scheduler"): 1,
        ("SchedulingGates", "default-scheduler"): 1,
    }


def test_the_plugin_that_gated_a_pod_is_asked_first(held: QueueBench, start: int) -> None:
    held.add()
    asked = held.gates.asked
    held.queue.move(CLAIM_ADDED, start)
    assert held.gates.asked == asked


def test_a_pod_is_asked_on_its_way_to_backoff_and_not_again_on_its_way_out(
    make_bench: type[QueueBench], start: int, node_added: Happening
) -> None:
    bench = make_bench()
    bench.add()
    bench.refuse()
    asked = bench.gates.asked
    bench.queue.move(node_added, start)
    assert (bench.place(), bench.gates.asked) == ("backoff", asked + 1)
    bench.pop()
    assert bench.gates.asked == asked + 1


def test_each_new_reason_is_reported_once(held: QueueBench, claims: Claims, reporter: Reporter, start: int) -> None:
    held.add()
    held.queue.move(CLAIM_ADDED, start)
    claims.reason = "waiting for another claim"
    held.queue.move(CLAIM_ADDED, start)
    claims.reason = ""
    held.queue.move(CLAIM_ADDED, start)
    assert reporter.told == ["waiting for a claim", "waiting for another claim", "passed"]


def test_a_reason_that_the_pods_status_shows_is_not_reported(held: QueueBench, reporter: Reporter) -> None:
    held.add(conditions={"PodScheduled": ("False", "NotReadyForScheduling", "waiting for a claim")})
    assert reporter.told == []


def test_a_report_that_failed_is_made_again_at_the_next_rejection(
    held: QueueBench, reporter: Reporter, start: int
) -> None:
    held.add()
    held.queue.report_failed("a")
    held.queue.move(CLAIM_ADDED, start)
    assert reporter.told == ["waiting for a claim"] * 2


def test_a_pod_that_was_never_held_back_is_not_reported(make_bench: type[QueueBench], reporter: Reporter) -> None:
    bench = make_bench(reporter=reporter)
    bench.add()
    assert reporter.told == []


def test_a_plugin_that_raises_holds_the_pod_back_and_the_queue_goes_on(
    make_bench: type[QueueBench], reporter: Reporter, start: int
) -> None:
    class Raises(Claims):
        def pre_enqueue(self, pod: Pod) -> Status | None:
            raise KeyError("claim")

    bench = make_bench([Raises()], reporter=reporter)
    bench.add()
    assert bench.place() == "gated"
    assert reporter.told == ["plugin Claims raised KeyError: 'claim'"]


def test_each_round_is_measured_and_one_in_ten_plugin_by_plugin(make_bench: type[QueueBench], start: int) -> None:
    class Measures:
        def __init__(self) -> None:
            self.rounds: list[tuple[str, str, str, int]] = []
            self.plugins: list[tuple[str, str, str, int]] = []

        def extension_point(self, point: str, status: str, profile: str, duration: int) -> None:
            self.rounds.append((point, status, profile, duration))

        def plugin(self, plugin: str, point: str, status: str, duration: int) -> None:
            self.plugins.append((plugin, point, status, duration))

    bench, measures, ticks = make_bench(), Measures(), iter(range(1000))
    bench.queue.measure(measures, lambda: next(ticks))
    for number in range(10):
        bench.add(f"pod-{number}", scheduling_gates=("quota",) if number == 9 else ())
    assert measures.rounds[0][:3] == ("PreEnqueue", "Success", "default-scheduler")
    assert measures.rounds[9][:3] == ("PreEnqueue", "UnschedulableAndUnresolvable", "default-scheduler")
    assert len(measures.rounds) == 10
    assert measures.plugins == [("SchedulingGates", "PreEnqueue", "UnschedulableAndUnresolvable", 1)]
    assert measures.rounds[9][3] == 3
    assert bench.queue.counts.rejections == {("SchedulingGates", "default-scheduler"): 1}
    bench.add("of nobody's", scheduler_name="without plugins")
    assert measures.rounds[10][:3] == ("PreEnqueue", "Success", "without plugins")


def test_who_is_to_be_told_may_be_named_later(bench: QueueBench, reporter: Reporter) -> None:
    bench.queue.report_to(reporter)
    bench.add(scheduling_gates=("quota",))
    assert reporter.told == ["gated"]
