"""The metrics of the scheduler, beside those of a stock kube-scheduler that does the same."""

import asyncio
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

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


def have_gpus(api: Any, name: str, number: int) -> None:
    """Node `name` has devices, and a class by which they are the extended resource `name`.example.com/gpu."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{each}"} for each in range(number)]
    spec = {"driver": f"{name}.example.com", "nodeName": name, "pool": pool, "devices": devices}
    api.create("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": name}, "spec": spec})
    selector = {"cel": {"expression": f"device.driver == '{name}.example.com'"}}
    stands = {"selectors": [selector], "extendedResourceName": f"{name}.example.com/gpu"}
    api.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": name}, "spec": stands})


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
    have_gpus(api, namespace, 2)

    def create(scheduler: str) -> None:
        kinds = {"small": "100m", "huge": "100", "gpu": "100m"}
        for name, cpu in kinds.items():
            pod = make_pod(f"{scheduler}-{name}", scheduler, cpu, nodeSelector={"for": namespace})
            if name == "gpu":
                pod["spec"]["containers"][0]["resources"]["limits"] = {f"{namespace}.example.com/gpu": "1"}
            api.create(pods, pod)

    def is_done(scheduler: str) -> bool:
        small, huge, gpu = (api.get(f"{pods}/{scheduler}-{name}") for name in ("small", "huge", "gpu"))
        return bool(small["spec"].get("nodeName") and gpu["spec"].get("nodeName") and huge["status"].get("conditions"))

    async def test() -> tuple[str, str]:
        async with running(ours) as service:
            for scheduler in schedulers:
                await asyncio.to_thread(create, scheduler)
            await until(lambda: all(map(is_done, schedulers)))
            wanted = f'scheduler_schedule_attempts_total{{profile="{ours}",result="scheduled"}} 2.0'
            text = await until(lambda: text_of(service.port), lambda text: wanted in text)
            return text, control_plane.scheduler_get("/metrics")

    found, stock = map(families, asyncio.run(test()))
    common = found.keys() & stock.keys()
    assert {name: shape(found[name]) for name in common} == {name: shape(stock[name]) for name in common}
    assert stock.keys() - common - WHEN_OBSERVED <= NOT_OURS
    for name, labels in SAME_VALUES.items():
        assert values(found[name], labels) == values(stock[name], labels) - NOT_MEASURED, name
