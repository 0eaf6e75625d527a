"""What becomes of Pods follows from nodes and Pods, and the same seed gives the same spans."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from podtrail_scheduler import AttemptRecord, Delivery, Simulation, TracedSimulation, Workload
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.plugins.registry import DEFAULT_SCHEDULER
from podtrail_scheduler.workload import DEFAULT_PLUGINS

Simulate = Callable[[Mapping[str, object]], tuple[Simulation, list[AttemptRecord], list[ReadableSpan]]]


def deliveries(workload: Mapping[str, object], **options: int) -> list[Delivery]:
    return list(TracedSimulation(Workload.model_validate(workload), **options).run())  # type: ignore[arg-type]


def of(records: list[AttemptRecord], name: str) -> list[AttemptRecord]:
    return [record for record in records if record.pod.name == name]


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert deliveries({"length": "1m"}) == deliveries({"length": "1m"})


def test_another_seed_gives_another_course() -> None:
    assert deliveries({"length": "1m"}) != deliveries({"length": "1m", "seed": 2})


def test_one_nodes_cpu_decides_what_becomes_of_a_pod(simulate: Simulate) -> None:
    def results(cpu: str) -> Counter[str]:
        nodes = [
            {"name": "small", "count": 4},
            {"name": "one", "allocatable": {"cpu": cpu, "memory": "9Gi", "pods": 99}},
        ]
        pods = [{"name": "web", "requests": {"cpu": "5"}, "lifetime": "1s"}]
        _, records, _ = simulate({"length": "1m", "arrival_rate": 0.2, "nodes": nodes, "pods": pods})
        return Counter(record.result for record in records)

    assert results("4").keys() == {"Unschedulable"}
    assert results("64").keys() == {"Success"}


def test_the_default_workload_has_every_kind_of_result() -> None:
    traced = TracedSimulation(Workload.model_validate({}))
    requests = b"".join(request for delivery in traced.run() for request in delivery.requests)
    summary = traced.summary()
    assert summary.attempts.keys() == {"Success", "Unschedulable", "Error"}
    assert summary.preempted > 0
    for name in (b"plugin: CostScorer", b"plugin: VolumeAttacher", b"POST /api/v1/namespaces/{:namespace}/pods"):
        assert name in requests
    assert {"SchedulingGates", "NodeAffinity"} <= summary.pending_because_of.keys()
    assert traced.open_spans == 0


def test_attempts_are_counted_from_one_without_a_gap(simulate: Simulate) -> None:
    _, records, spans = simulate({"length": "3m", "faults": {"bind_refused": [{"times": 2}]}})
    numbers: dict[str, list[int]] = {}
    for record in records:
        numbers.setdefault(record.pod.uid, []).append(record.number)
    assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())
    roots = [span.attributes or {} for span in spans if span.name == "SchedulePod"]
    told = Counter((str(each["k8s.pod.uid"]), each["scheduler.attempts"]) for each in roots)
    assert told == Counter((record.pod.uid, record.number) for record in records)


def test_a_pod_is_tried_again_after_its_backoff(simulate: Simulate) -> None:
    workload = {"length": "3m", "arrival_rate": 0.05, "nodes": [{"name": "n"}], "pods": [{"name": "web"}]}
    _, records, _ = simulate({**workload, "faults": {"bind_refused": [{}]}})
    tries = of(records, "web-0")
    waits = [(after.started - before.ended) // SECOND for before, after in itertools.pairwise(tries)]
    assert waits[:4] in ([1, 2, 4, 8], [1, 2, 4, 9])
    assert {record.result for record in tries} == {"Error"}


def test_a_pod_that_leaves_makes_room_for_one_that_waits(simulate: Simulate) -> None:
    nodes = [{"name": "n", "allocatable": {"cpu": 1, "memory": "8Gi", "pods": 9}}]
    pods = [{"name": "web", "requests": {"cpu": 1}, "lifetime": "20s"}]
    simulation, records, _ = simulate({"length": "2m", "arrival_rate": 0.1, "nodes": nodes, "pods": pods})
    waited = next(record for record in records if record.result == "Unschedulable")
    assert waited.refused_by == {"NodeResourcesFit"}
    assert of(records, waited.pod.name)[-1].result == "Success"
    assert simulation.summary().bound > 3


def test_preemption_frees_room_for_who_matters_more(simulate: Simulate) -> None:
    nodes = [{"name": "n", "allocatable": {"cpu": 2, "memory": "8Gi", "pods": 9}}]
    pods = [
        {"name": "low", "weight": 5, "requests": {"cpu": 1}, "grace": "3s"},
        {"name": "high", "requests": {"cpu": 2}, "priority": 9, "lifetime": "1m"},
    ]
    simulation, records, _ = simulate({"length": "1m", "arrival_rate": 0.5, "nodes": nodes, "pods": pods})
    tries = of(records, "high-0")
    assert tries[0].message.endswith("preempting 2 victims")
    assert (tries[-1].result, tries[-1].node) == ("Success", "n-0")
    assert tries[-1].started - tries[0].ended > 3 * SECOND
    assert simulation.summary().preempted >= 2


def test_gated_pods_are_tried_when_their_gates_are_lifted(simulate: Simulate) -> None:
    pods = [
        {"name": "soon", "gates": ["quota"], "gates_lifted_after": "10s"},
        {"name": "never", "gates": ["quota", "budget"]},
    ]
    simulation, records, _ = simulate({"length": "1m", "nodes": [{"name": "n", "count": 20}], "pods": pods})
    assert {record.pod.name.split("-")[0] for record in records} == {"soon"}
    assert all(record.started - record.pod.creation_timestamp > 10 * SECOND for record in records)
    gated = {pod.message for pod in simulation.summary().pending if pod.key.startswith("default/never")}
    assert gated == {"waiting for scheduling gates: [quota budget]"}


def test_a_node_that_joins_or_is_uncordoned_is_used(simulate: Simulate) -> None:
    nodes = [{"name": "later", "joins_after": "20s", "cordoned_for": "20s"}]
    _, records, _ = simulate({"length": "1m", "arrival_rate": 0.1, "nodes": nodes, "pods": [{"name": "web"}]})
    tries = of(records, "web-0")
    messages = [record.message.split(" preemption")[0] for record in tries]
    assert messages[0] == "no nodes available to schedule pods"
    assert "0/1 nodes are available: 1 node(s) were unschedulable." in messages
    assert tries[-1].result == "Success"


def test_a_slow_score_plugin_holds_everybody_up(simulate: Simulate) -> None:
    slow = {"name": "Cost", "extension_point": "score", "takes": "5s", "every": 20}
    workload = {"length": "30s", "nodes": [{"name": "n", "count": 9}], "pods": [{"name": "web"}]}
    _, _, spans = simulate({**workload, "faults": {"slow_plugins": [slow]}})
    waits = [(span.attributes or {})["scheduler.queue_wait_ms"] for span in spans if span.name == "SchedulePod"]
    assert max(waits) > 3000  # type: ignore[type-var, operator]


def test_a_slow_binding_holds_nobody_else_up(simulate: Simulate) -> None:
    slow = {"name": "Volumes", "extension_point": "preBind", "takes": "5s"}
    workload = {"length": "30s", "nodes": [{"name": "n", "count": 9}], "pods": [{"name": "web"}]}
    _, records, spans = simulate({**workload, "faults": {"slow_plugins": [slow]}})
    waits = [(span.attributes or {})["scheduler.queue_wait_ms"] for span in spans if span.name == "SchedulePod"]
    assert set(waits) == {0}
    assert any(after.started < before.ended for before, after in itertools.pairwise(records))


def test_the_summary_adds_up(simulate: Simulate) -> None:
    simulation, records, _ = simulate({"length": "3m"})
    summary = simulation.summary()
    assert summary.attempts == Counter(record.result for record in records)
    assert summary.bound == summary.attempts["Success"]
    running = sum(bool(pod.node_name) for pod in simulation.api_server.pods.values())
    assert summary.bound == summary.finished + summary.preempted + running
    assert abs(summary.created - summary.bound - len(summary.pending)) <= 1  # one may be on its way to the scheduler


def test_a_delivery_never_comes_before_the_end_of_its_spans() -> None:
    last = 0
    total = 0
    for delivery in deliveries({"length": "2m"}, start=5 * SECOND):
        assert delivery.now >= last
        last = delivery.now
        for request in map(ExportTraceServiceRequest.FromString, delivery.requests):
            for resource in request.resource_spans:
                ends = [span.end_time_unix_nano for scope in resource.scope_spans for span in scope.spans]
                assert max(ends) <= delivery.now
                total += len(ends)
    assert total > 1000


def test_texts_about_long_attempts_go_where_they_are_wanted() -> None:
    texts: list[str] = []
    list(TracedSimulation(Workload.model_validate({"length": "2m"}), log=texts.append).run())
    assert any('["plugin: CostScorer" ' in text for text in texts)
    assert all(text.splitlines()[0].endswith("ms):") for text in texts)


def test_the_configuration_knows_the_names_of_the_default_plugins() -> None:
    simulation = Simulation(Workload.model_validate({"faults": {}}))
    assert simulation.scheduler.profiles[DEFAULT_SCHEDULER].names == DEFAULT_PLUGINS


def test_moments_never_go_backwards_and_come_when_the_attempt_is_over() -> None:
    slow = {"name": "Cost", "extension_point": "score", "takes": "700ms"}
    simulation = Simulation(Workload.model_validate({"length": "1m", "faults": {"slow_plugins": [slow]}}))
    moments = list(simulation.run())
    assert [moment.now for moment in moments] == sorted(moment.now for moment in moments)
    assert all(moment.now == moment.attempt.ended for moment in moments if moment.attempt is not None)


def test_a_run_that_is_given_up_while_pods_are_bound_ends_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    run = TracedSimulation(Workload.model_validate({"length": "1m", "api_server": {"bind_takes": "1h"}})).run()
    for _ in itertools.islice(run, 30):
        pass
    del run
    assert not caplog.records
