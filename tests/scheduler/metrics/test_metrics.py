"""The metrics as Prometheus reads them."""

from collections.abc import Mapping, Sequence
from itertools import count

import pytest
from podtrail_scheduler.framework.events import NODE_ADD, Happening, Hint, Registration, hints_of
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.metrics import definitions, sources
from podtrail_scheduler.metrics.families import CounterVec, GaugeVec, HistogramVec, exponential_buckets
from podtrail_scheduler.metrics.scheduler_metrics import SchedulerMetrics
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import MILLISECOND, SECOND
from podtrail_scheduler.queueing.queue import ProfileQueueing, SchedulingQueue
from prometheus_client.parser import text_string_to_metric_families


def samples(metrics: SchedulerMetrics) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by name and label values (in the order of the labels' names), parsed from the text."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


@pytest.fixture
def metrics() -> SchedulerMetrics:
    return SchedulerMetrics()


def test_attempts_are_counted_and_timed_by_result_and_profile(metrics: SchedulerMetrics) -> None:
    metrics.attempt("Success", "default-scheduler", 3 * MILLISECOND)
    metrics.attempt("Unschedulable", "default-scheduler", MILLISECOND)
    found = samples(metrics)
    assert found["scheduler_schedule_attempts_total"] == {
        ("default-scheduler", "scheduled"): 1,
        ("default-scheduler", "unschedulable"): 1,
    }
    buckets = found["scheduler_scheduling_attempt_duration_seconds_bucket"]
    assert buckets["0.002", "default-scheduler", "scheduled"] == 0
    assert buckets["0.004", "default-scheduler", "scheduled"] == 1
    assert buckets["0.001", "default-scheduler", "unschedulable"] == 1
    assert buckets["+Inf", "default-scheduler", "unschedulable"] == 1
    assert found["scheduler_scheduling_attempt_duration_seconds_sum"]["default-scheduler", "scheduled"] == 0.003


def test_a_bound_pod_counts_from_its_first_entry_into_the_active_queue(metrics: SchedulerMetrics) -> None:
    metrics.scheduled(QueuedPod(Pod("a"), 0, initial_attempt=0, attempts=2), 3 * SECOND)
    metrics.scheduled(QueuedPod(Pod("b"), 0, initial_attempt=0, attempts=20, flushed=True), 3 * SECOND)
    found = samples(metrics)
    assert found["scheduler_pod_scheduling_sli_duration_seconds_sum"] == {("15+",): 3, ("2",): 3}
    assert found["scheduler_pod_scheduling_attempts_sum"] == {(): 22}
    assert found["scheduler_pod_scheduled_after_flush_total"] == {(): 1}


def test_plugins_of_one_cycle_in_ten_are_recorded_always_the_same_ones(metrics: SchedulerMetrics) -> None:
    assert [cycle for cycle in range(1, 31) if metrics.records_plugins()] == [10, 20, 30]


def test_the_queue_is_read_when_it_is_asked_for(metrics: SchedulerMetrics) -> None:
    class Fit:
        name = "Fit"

        def events_to_register(self) -> Sequence[Registration]:
            return (Registration(NODE_ADD),)

    queue = SchedulingQueue(
        lambda entry: (entry.queued_at,), {"default-scheduler": ProfileQueueing([], hints_of([Fit()]))}
    )
    metrics.include(*sources.of_queue(queue))
    for name in "abc":
        queue.add(Pod(name, uid=name), 0)
    entry = queue.pop()
    assert entry is not None
    entry.refused_by = frozenset(["Fit"])
    queue.give_back(entry, 0)
    queue.pop()
    found = samples(metrics)
    assert {queue for (queue,), number in found["scheduler_pending_pods"].items() if number == 1} == {
        "active",
        "unschedulable",
    }
    assert sum(found["scheduler_pending_pods"].values()) == 2
    assert found["scheduler_queued_entities"]["active", "pod"] == 1
    assert found["scheduler_queue_incoming_pods_total"]["ScheduleAttemptFailure", "unschedulable"] == 1
    assert found["scheduler_unschedulable_pods"] == {("Fit", "default-scheduler"): 1}
    assert found["scheduler_inflight_events"] == {("PodPopped",): 1}


def test_a_search_that_found_no_node_is_no_failure_of_filter(metrics: SchedulerMetrics) -> None:
    metrics.extension_point("Filter", "Unschedulable", "default-scheduler", 1)
    metrics.extension_point("Filter", "Error", "default-scheduler", 1)
    assert samples(metrics)["scheduler_framework_extension_point_duration_seconds_count"] == {
        ("Filter", "default-scheduler", "Success"): 1,
        ("Filter", "default-scheduler", "Error"): 1,
    }


def test_plugins_are_shown_before_they_were_asked(metrics: SchedulerMetrics) -> None:
    metrics.evaluated("Fit", "Score", "default-scheduler")
    metrics.expect(["Fit", "Spread"], "Score", "default-scheduler")
    assert samples(metrics)["scheduler_plugin_evaluation_total"] == {
        ("Score", "Fit", "default-scheduler"): 1,
        ("Score", "Spread", "default-scheduler"): 0,
    }


def test_hints_are_timed_with_their_answer(metrics: SchedulerMetrics) -> None:
    ticks = count(step=MILLISECOND)

    def fails(pod: Pod, happening: Happening) -> Hint:
        raise ValueError

    hints = metrics.timed(
        {NODE_ADD: [("Fit", lambda pod, happening: Hint.QUEUE), ("Broken", fails)]}, lambda: next(ticks)
    )
    happening = Happening(NODE_ADD, None, Node("n"))
    (_, fit), (_, broken) = hints[NODE_ADD]
    assert fit(Pod("a"), happening) is Hint.QUEUE
    with pytest.raises(ValueError, match=r"^$"):
        broken(Pod("a"), happening)
    assert samples(metrics)["scheduler_queueing_hint_execution_duration_seconds_sum"] == {
        ("NodeAdd", "Error", "Broken"): 0.001,
        ("NodeAdd", "Queue", "Fit"): 0.001,
    }


def test_asynchronous_api_calls_are_there_with_their_gate_only(metrics: SchedulerMetrics) -> None:
    with_gate = SchedulerMetrics(async_api_calls=True)
    for each in (metrics, with_gate):
        each.api_call_executed("pod_status_patch", "success", MILLISECOND)
    assert "scheduler_async_api_call_execution_total" not in samples(metrics)
    assert samples(with_gate)["scheduler_async_api_call_execution_total"] == {("pod_status_patch", "success"): 1}


def test_counters_of_tracing_are_summed_over_who_keeps_them(metrics: SchedulerMetrics) -> None:
    labels = {"component": "kube-scheduler", "controller": "a", "resource_kind": "Pod", "result": "success"}
    metrics.include(
        *sources.of_tracing(
            lambda: [
                ("scheduler_tracing_spans_exported_total", {"result": "success"}, 5),
                ("scheduler_tracing_spans_exported_total", {"result": "error"}, 2),
                ("trace_context_annotations_injected_total", labels, 3),
                ("trace_context_annotations_injected_total", labels, 4),
            ]
        )
    )
    found = samples(metrics)
    assert found["scheduler_tracing_spans_exported_total"] == {("error",): 2, ("success",): 5}
    assert found["trace_context_annotations_injected_total"] == {("kube-scheduler", "a", "Pod", "success"): 7}


def test_cache_dispatcher_and_events_are_read_where_they_are_kept(metrics: SchedulerMetrics) -> None:
    class Dispatcher:
        def pending(self) -> Mapping[str, int]:
            return {"pod_binding": 1}

    metrics.include(
        *sources.of_cache(lambda: {"nodes": 3, "pods": 2, "assumed_pods": 1}),
        *sources.of_dispatcher(Dispatcher()),
        *sources.of_events(lambda: {"queue_full": 4}),
    )
    found = samples(metrics)
    assert found["scheduler_cache_size"] == {("assumed_pods",): 1, ("nodes",): 3, ("pods",): 2}
    assert found["scheduler_pending_async_api_calls"] == {("pod_binding",): 1}
    assert found["scheduler_events_dropped_total"] == {("queue_full",): 4}


def test_every_recorded_metric_appears(metrics: SchedulerMetrics) -> None:
    metrics.algorithm(1)
    metrics.extension_point("Filter", "Success", "default-scheduler", 1)
    metrics.plugin("Fit", "Filter", "Success", 1)
    metrics.evaluated("Fit", "Filter", "default-scheduler")
    metrics.permit_wait("Success", 1)
    metrics.binding(1)
    metrics.preemption_attempt()
    metrics.preemption_victims(2)
    metrics.event_handled(NODE_ADD, 1)
    text = metrics.exposition().decode()
    for line in (
        (
            "scheduler_framework_extension_point_duration_seconds_count"
            '{extension_point="Filter",profile="default-scheduler",status="Success"} 1.0'
        ),
        'scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="Fit",status="Success"} 1.0',
        'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Fit",profile="default-scheduler"} 1.0',
        'scheduler_permit_wait_duration_seconds_count{result="Success"} 1.0',
        'scheduler_goroutines{operation="binding"} 1.0',
        "scheduler_preemption_attempts_total 1.0",
        'scheduler_preemption_victims_bucket{le="2"} 1.0',
        'scheduler_event_handling_duration_seconds_count{event="NodeAdd"} 1.0',
        "# TYPE scheduler_schedule_attempts_total counter",
        "# HELP scheduler_scheduling_algorithm_duration_seconds [BETA] Scheduling algorithm latency in seconds",
    ):
        assert line in text, line


def test_buckets_grow_by_their_factor() -> None:
    assert exponential_buckets(1, 2, 5) == (1, 2, 4, 8, 16)
    assert definitions.PLUGIN_EXECUTION_DURATION.buckets[:2] == (0.00001, 0.000015000000000000002)


def test_a_value_on_a_bound_belongs_below_it() -> None:
    histogram = HistogramVec("h", "", (), (1.0, 2.0))
    histogram.observe(1.0)
    histogram.observe(2.5)
    [family] = histogram.collect()
    assert [(sample.labels.get("le"), sample.value) for sample in family.samples[:3]] == [
        ("1", 1),
        ("2", 1),
        ("+Inf", 2),
    ]


def test_metrics_without_labels_are_there_from_the_start() -> None:
    assert [sample.value for family in CounterVec("c_total", "").collect() for sample in family.samples] == [0]
    assert [family.samples for family in GaugeVec("g", "", ("l",)).collect()] == [[]]
