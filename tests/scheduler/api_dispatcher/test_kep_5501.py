"""KEP-5501, Test Plan: PreEnqueue rejections in Pod status and Events, with the feature on and off.

Each test names the sentence of the KEP that it holds to. Queue, reporter and dispatcher are the scheduler's own, in
virtual time; the same on a real API server is in the tests of the control plane.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from podtrail_scheduler.api_dispatcher.calls import NOT_READY_FOR_SCHEDULING, Known
from podtrail_scheduler.api_dispatcher.dispatcher import DispatcherSettings
from podtrail_scheduler.api_dispatcher.reporting import PodStatusReporter
from podtrail_scheduler.framework.client import ApiError, PodCondition
from podtrail_scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    EventResource,
    Happening,
    Registration,
    hints_of,
)
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import MINUTE
from podtrail_scheduler.queueing.queue import ProfileQueueing, SchedulingQueue

from tests.scheduler.api_dispatcher.bench import DispatcherBench, MakeBench

GATED = "Scheduling is blocked due to non-empty scheduling gates"
CLAIM = Happening(ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.ADD))

Recorded = tuple[float, str, str, str, str, str]
"""Seconds since the start, type, reason, action, name of the Pod and note of an Event."""


class Claims:
    """Stands for DynamicResources: holds Pods back as long as it has a reason."""

    name = "DynamicResources"

    def __init__(self) -> None:
        self.status: Status | None = unschedulable('waiting for resource claim "my-claim" to be present')

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(CLAIM.event),)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self.status


class Gates:
    """SchedulingGates, with the API server's message."""

    name = "SchedulingGates"

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),
        )

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable(GATED) if pod.scheduling_gates else None


class Cluster:
    """A queue whose Pods' status is reported; the watch tells queue and dispatcher at once."""

    def __init__(self, bench: DispatcherBench, *, enabled: bool = True) -> None:
        self.bench = bench
        self.claims = Claims()
        self.events: list[Recorded] = []
        reporter = PodStatusReporter(bench.dispatcher, self._event, lambda uid: self.queue.report_failed(uid))
        self.queue = SchedulingQueue(
            lambda entry: (entry.queued_at,),
            {"default-scheduler": ProfileQueueing([Gates(), self.claims], hints_of([Gates(), self.claims]))},
            reporter=reporter if enabled else None,
        )
        bench.api_server.watchers.append(self._watched)

    def _watched(self, old: Pod | None, new: Pod) -> None:
        now = self.bench.timeline.now()
        if old is None:
            self.queue.add(new, now)
        elif not new.node_name:
            self.queue.update(old, new, now)

    def _event(self, regarding: Pod, related: None, kind: str, reason: str, action: str, note: str) -> None:
        self.events.append((self.bench.api_server.seconds(), kind, reason, action, regarding.name, note))

    def says(self, message: str) -> None:
        """The plugin's opinion changes (empty: it is content), and the Pods are asked again."""
        self.claims.status = unschedulable(message) if message else None
        self.queue.move(CLAIM, self.bench.timeline.now())

    def condition(self) -> Known | None:
        return self.bench.api_server.pods["a"].conditions.get("PodScheduled")

    def pop(self) -> QueuedPod:
        entry = self.queue.pop()
        assert entry is not None
        return entry

    def sent(self) -> list[tuple[float, str, str | None]]:
        """Time, verb and message of the requests so far."""
        return [(request[0], request[1], request[3]) for request in self.bench.requests]


@pytest.fixture
def cluster(bench: DispatcherBench) -> Cluster:
    return Cluster(bench)


def test_a_rejection_is_reflected_in_the_pod_status_after_five_seconds(
    cluster: Cluster, bench: DispatcherBench
) -> None:
    bench.pod()
    bench.run(4.999)
    assert (cluster.condition(), cluster.events) == (None, [])
    bench.run(0.1)
    message = 'waiting for resource claim "my-claim" to be present'
    assert cluster.condition() == ("False", NOT_READY_FOR_SCHEDULING, message)
    assert cluster.events == [(5, "Warning", "NotReadyForScheduling", "Scheduling", "a", message)]


def test_with_the_feature_disabled_nothing_is_written(bench: DispatcherBench) -> None:
    cluster = Cluster(bench, enabled=False)
    bench.pod()
    bench.run()
    assert cluster.queue.lengths()["gated"] == 1
    assert (bench.requests, cluster.events) == ([], [])


def test_all_rejections_are_reported_internal_errors_too(cluster: Cluster, bench: DispatcherBench) -> None:
    cluster.claims.status = error("lister is not synced")
    bench.pod()
    bench.run()
    assert cluster.condition() == ("False", NOT_READY_FOR_SCHEDULING, "lister is not synced")


def test_a_rejection_that_resolves_within_the_delay_is_cancelled(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.pod()
    bench.run(4)
    cluster.says("")
    bench.run()
    assert (bench.requests, cluster.events) == ([], [])
    assert cluster.queue.lengths()["active"] == 1


def test_a_rejection_that_changes_within_the_delay_is_overwritten(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.pod()
    bench.run(2)
    cluster.says("waiting for another claim")
    bench.run()
    assert [message for _, _, message in cluster.sent()] == ["waiting for another claim"]
    assert [event[5] for event in cluster.events] == ["waiting for another claim"]


def test_a_new_call_for_the_same_pod_does_not_reset_the_delay(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.pod()
    for second in range(4):
        bench.run(1)
        cluster.says(f"waiting since {second}")
    bench.run()
    assert cluster.sent() == [(5, "patch", "waiting since 3")]


def test_the_same_rejection_again_is_not_sent_again(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.pod()
    for _ in range(20):
        bench.run(1)
        cluster.queue.move(CLAIM, bench.timeline.now())
    assert len(bench.requests) == len(cluster.events) == 1


def test_the_condition_is_removed_after_the_pod_passes_and_the_delay(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.pod()
    bench.run(6)
    cluster.says("")
    bench.run(4.9)
    assert cluster.condition() is not None
    bench.run(1)
    assert cluster.condition() is None
    assert [(time, verb) for time, verb, _ in cluster.sent()] == [(5, "patch"), (11, "remove")]


def test_the_status_does_not_flicker_when_a_pod_passes_and_is_rejected_again(
    cluster: Cluster, bench: DispatcherBench
) -> None:
    bench.pod()
    bench.run(6)
    cluster.says("")
    bench.run(1)
    entry = cluster.pop()
    cluster.claims.status = unschedulable('waiting for resource claim "my-claim" to be present')
    cluster.queue.give_back(entry, bench.timeline.now())
    cluster.queue.activate(["a"], bench.timeline.now())
    bench.run()
    assert len(bench.requests) == 1
    assert cluster.condition() == (
        "False",
        NOT_READY_FOR_SCHEDULING,
        'waiting for resource claim "my-claim" to be present',
    )


def test_a_result_of_scheduling_takes_the_place_of_what_is_delayed(cluster: Cluster, bench: DispatcherBench) -> None:
    pod = bench.pod()
    bench.run(3)
    cluster.says("")
    bench.dispatcher.patch_pod_status(pod, PodCondition("PodScheduled", "False", "Unschedulable", "0/3"), None)
    bench.run()
    assert cluster.sent() == [(3, "patch", "0/3")]


def test_a_pod_with_gates_whose_status_the_api_server_has_set_is_not_patched(
    cluster: Cluster, bench: DispatcherBench
) -> None:
    bench.pod(scheduling_gates=("quota",), conditions={"PodScheduled": ("False", "SchedulingGated", GATED)})
    bench.run()
    assert cluster.queue.lengths()["gated"] == 1
    assert (bench.requests, cluster.events) == ([], [])


def test_a_pod_whose_gates_are_lifted_and_that_is_held_back_still_is_reported(
    cluster: Cluster, bench: DispatcherBench
) -> None:
    pod = bench.pod(scheduling_gates=("quota",), conditions={"PodScheduled": ("False", "SchedulingGated", GATED)})
    bench.run(10)
    bench.api_server.put(replace(pod, scheduling_gates=()))
    bench.run()
    condition = cluster.condition()
    assert condition is not None
    assert condition[1:] == (NOT_READY_FOR_SCHEDULING, 'waiting for resource claim "my-claim" to be present')


def test_a_condition_of_another_reason_is_not_removed(cluster: Cluster, bench: DispatcherBench) -> None:
    cluster.claims.status = None
    pod = bench.pod(scheduling_gates=("quota",), conditions={"PodScheduled": ("False", "SchedulingGated", GATED)})
    bench.run(10)
    bench.api_server.put(replace(pod, scheduling_gates=()))
    bench.run()
    assert bench.requests == []


def test_a_condition_of_the_scheduler_before_is_not_written_again(cluster: Cluster, bench: DispatcherBench) -> None:
    message = 'waiting for resource claim "my-claim" to be present'
    bench.pod(conditions={"PodScheduled": ("False", NOT_READY_FOR_SCHEDULING, message)})
    bench.run()
    assert bench.requests == []


def test_a_failed_patch_neither_holds_the_queue_nor_changes_it_and_is_retried(
    cluster: Cluster, bench: DispatcherBench
) -> None:
    bench.api_server.failures = [ApiError("no answer"), ApiError("busy", "TooManyRequests", 429)]
    bench.pod()
    bench.run(5.5)
    assert cluster.condition() is None
    cluster.claims.status = None
    bench.pod("other")
    assert cluster.pop().pod.name == "other"
    cluster.claims.status = unschedulable("x")
    bench.run()
    assert [time for time, _, _ in cluster.sent()] == [5, 6.01, 8.02]
    assert len(cluster.events) == 1
    assert cluster.condition() is not None


def test_after_the_last_failed_patch_a_re_evaluation_tries_again(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.api_server.failures = [ApiError("forbidden", "Forbidden", 403)]
    bench.pod()
    bench.run()
    assert cluster.condition() is None
    cluster.queue.move(CLAIM, bench.timeline.now())
    bench.run()
    assert cluster.condition() is not None


def test_a_pod_that_is_deleted_within_the_delay_is_not_written_about(cluster: Cluster, bench: DispatcherBench) -> None:
    bench.pod()
    bench.run(1)
    del bench.api_server.pods["a"]
    cluster.queue.delete("a")
    bench.dispatcher.forget("a")
    bench.run()
    assert (bench.requests, cluster.events) == ([], [])


def test_a_storm_of_rejections_is_sent_at_the_limited_rate_and_holds_up_no_binding(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(status_qps=10, status_burst=5))
    Cluster(bench)
    for number in range(100):
        bench.pod(f"pod-{number}")
    bench.run(5)
    bound = bench.spawn(bench.dispatcher.bind(bench.api_server.put(Pod("urgent", uid="urgent")), "node-1", {}))
    bench.run(0.1)
    assert bound == [None]
    bench.run(20)
    times = [request[0] for request in bench.requests if request[1] == "patch"]
    assert len(times) == 100
    assert times[-1] >= 5 + (100 - 5) / 10


def test_gated_pods_cost_no_call_and_no_delayed_one_however_many(cluster: Cluster, bench: DispatcherBench) -> None:
    gated = {"PodScheduled": ("False", "SchedulingGated", GATED)}
    for number in range(1000):
        bench.pod(f"pod-{number}", scheduling_gates=("quota",), conditions=gated)
    assert bench.dispatcher.pending() == {"pod_binding": 0, "pod_status_patch": 0}
    cluster.queue.flush_unschedulable(bench.timeline.now() + 6 * MINUTE)
    bench.run()
    assert bench.requests == []
