"""The plugins of one attempt in ten are measured: in its binding cycle as in its scheduling cycle, and no other's."""

import pytest
from podtrail_scheduler.metrics.scheduler_metrics import PLUGIN_SAMPLES, SchedulerMetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.scheduler.bench import Bench, pod


def measured(metrics: SchedulerMetrics, point: str) -> int:
    """How many calls at a point were measured."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    return sum(
        int(sample.value)
        for family in families
        for sample in family.samples
        if sample.name == "scheduler_plugin_execution_duration_seconds_count"
        and sample.labels["extension_point"] == point
    )


@pytest.mark.parametrize("attempts", [PLUGIN_SAMPLES, PLUGIN_SAMPLES + 1])
def test_a_binding_cycle_is_measured_as_its_own_scheduling_cycle_was(attempts: int) -> None:
    """All bindings end after the last scheduling cycle has begun: whether that one is sampled is none of theirs."""
    metrics = SchedulerMetrics()
    bench = Bench(metrics=metrics)
    for number in range(attempts):
        bench.create(pod(f"p{number}", requests={"cpu": 1}))
    bench.step_until(lambda: len(bench.records) == attempts)
    assert {record.result for record in bench.records} == {"Success"}
    assert measured(metrics, "Bind") == 1
