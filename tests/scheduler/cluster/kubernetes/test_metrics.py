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
GPU = "example.com/gpu"
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


def have_gpus(api: Any, number: int) -> None:
    """Node `n` has devices, and a class by which they are an extended resource."""
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{each}"} for each in range(number)]
    spec = {"driver": "example.com", "nodeName": "n", "pool": pool, "devices": devices}
    api.create("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "n"}, "spec": spec})
    selector = {"cel": {"expression": "device.driver == 'example.com'"}}
    stands = {"selectors": [selector], "extendedResourceName": GPU}
    api.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": stands})


def with_gpu(pod: Any) -> Any:
    pod["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
    return pod


def text_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


def test_names_types_helps_labels_and_buckets_are_those_of_kube_scheduler(
    start_control_plane: Any, running: Any, until: Any, make_pod: Any
) -> None:
    plane = start_control_plane()
    plane.start_scheduler({"profiles": [{"schedulerName": "theirs"}]}, flags=["-v=2"])
    plane.api.node("n", {"cpu": "4"})
    have_gpus(plane.api, 2)
    pods = "/api/v1/namespaces/default/pods"

    def node(name: str) -> Any:
        return plane.api.get(f"{pods}/{name}")["spec"].get("nodeName")

    def conditions(name: str) -> Any:
        return plane.api.get(f"{pods}/{name}")["status"].get("conditions")

    async def test() -> None:
        async with running("ours", kubeconfig=plane.kubeconfig) as service:
            for scheduler in ("ours", "theirs"):
                for number in range(12):
                    await asyncio.to_thread(plane.api.create, pods, make_pod(f"{scheduler}-{number}", scheduler))
                await asyncio.to_thread(plane.api.create, pods, make_pod(f"{scheduler}-huge", scheduler, "100"))
                await asyncio.to_thread(plane.api.create, pods, with_gpu(make_pod(f"{scheduler}-gpu", scheduler)))
                for number in range(12):
                    await until(lambda scheduler=scheduler, number=number: node(f"{scheduler}-{number}"))
                await until(lambda scheduler=scheduler: node(f"{scheduler}-gpu"))
                await until(lambda scheduler=scheduler: conditions(f"{scheduler}-huge"))
            wanted = 'scheduler_schedule_attempts_total{profile="ours",result="scheduled"} 13.0'
            text = await until(lambda: text_of(service.port), lambda text: wanted in text)
        ours, theirs = families(text), families(plane.scheduler_get("/metrics"))
        common = ours.keys() & theirs.keys()
        assert {name: shape(ours[name]) for name in common} == {name: shape(theirs[name]) for name in common}
        assert theirs.keys() - common - WHEN_OBSERVED <= NOT_OURS
        for name, labels in SAME_VALUES.items():
            assert values(ours[name], labels) == values(theirs[name], labels) - NOT_MEASURED, name

    asyncio.run(test())
    plane.stop()
