"""The metrics of the scheduler, beside those of a stock kube-scheduler that does the same."""

import asyncio
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.scheduler.cluster.kubernetes.stored_objects import asking_for, devices

pytestmark = pytest.mark.control_plane

OF_SCHEDULERS = ("scheduler_", "dynamic_resource_allocation_")
NOT_OURS = {
    "scheduler_batch_attempts",
    "scheduler_batch_cache_flushed",
    "scheduler_get_node_hint_duration_seconds",
    "scheduler_store_schedule_results_duration_seconds",
}
"""Families of kube-scheduler that are not here: OpportunisticBatching."""

WHEN_OBSERVED = {"scheduler_queueing_hint_execution_duration_seconds"}
"""There only once something was observed, which need not happen to both in this test."""
SAME_VALUES = {
    "scheduler_framework_extension_point_duration_seconds": ("extension_point", "status"),
    "scheduler_pending_pods": ("queue",),
    "scheduler_cache_size": ("type",),
    "scheduler_schedule_attempts": ("result",),
    "scheduler_unschedulable_pods": ("plugin",),
    "scheduler_pod_scheduling_sli_duration_seconds": ("attempts",),
    "dynamic_resource_allocation_resourceclaim_creates": (
        "status",
        "admin_access",
        "owner_api_group",
        "owner_api_kind",
    ),
}
"""Labels whose values are the same after the same work."""
NOT_MEASURED = {("Sign", "Success")}


def families(text: str) -> Mapping[str, Metric]:
    found = text_string_to_metric_families(text)
    return {each.name: each for each in found if each.name.startswith(OF_SCHEDULERS)}


def shape(family: Metric) -> tuple[str, str, frozenset[str], frozenset[str]]:
    """Type, help, names of labels, and bounds of buckets."""
    names = {name for sample in family.samples for name in sample.labels}
    bounds = {sample.labels["le"] for sample in family.samples if "le" in sample.labels}
    return family.type, family.documentation, frozenset(names), frozenset(bounds)


def values(family: Metric, labels: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {tuple(sample.labels.get(label, "") for label in labels) for sample in family.samples}


def text_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        return str(answer.read().decode())


def test_names_types_helps_labels_and_buckets_are_those_of_kube_scheduler(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, kube_scheduler: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    ours, theirs = schedulers = f"{namespace}-ours", f"{namespace}-theirs"
    kube_scheduler(theirs)
    api.node(namespace, {"cpu": "4"}, labels={"for": namespace})
    resource = f"{namespace}.example.com/gpu"
    devices(api, namespace, namespace, "xy", extendedResourceName=resource)

    def create(scheduler: str) -> None:
        """As many as it takes for plugins to be measured, which they are in one of ten attempts."""
        kinds = {**{f"small-{number}": "100m" for number in range(10)}, "huge": "100", "gpu": "100m"}
        for name, cpu in kinds.items():
            pod = make_pod(f"{scheduler}-{name}", scheduler, cpu, nodeSelector={"for": namespace})
            api.create(pods, asking_for(pod, resource) if name == "gpu" else pod)

    def is_done(scheduler: str) -> bool:
        created = [pod for pod in api.get(pods)["items"] if pod["spec"]["schedulerName"] == scheduler]
        refused = [pod for pod in created if "nodeName" not in pod["spec"]]
        return len(refused) == 1 and "conditions" in refused[0]["status"]

    async def test() -> tuple[str, str]:
        async with running(ours) as service:
            for scheduler in schedulers:
                await asyncio.to_thread(create, scheduler)
            await until(lambda: all(map(is_done, schedulers)))
            wanted = f'scheduler_schedule_attempts_total{{profile="{ours}",result="scheduled"}} 11.0'
            text = await until(lambda: text_of(service.port), lambda text: wanted in text)
            return text, control_plane.scheduler_get("/metrics")

    found, stock = map(families, asyncio.run(test()))
    common = found.keys() & stock.keys()
    assert {name: shape(found[name]) for name in common} == {name: shape(stock[name]) for name in common}
    assert stock.keys() - common - WHEN_OBSERVED <= NOT_OURS
    for name, labels in SAME_VALUES.items():
        assert values(found[name], labels) == values(stock[name], labels) - NOT_MEASURED, name
