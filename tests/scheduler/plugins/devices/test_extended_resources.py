"""Extended resources that a DeviceClass stands for: the claim that is made, given its devices, and taken back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.metrics.scheduler_metrics import SchedulerMetrics
from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.objects.pod import ContainerRequests, ExtendedClaim, RequestMapping
from podtrail_scheduler.objects.resource import Device, DeviceClass, ResourceClaim, ResourceSlice
from podtrail_scheduler.plugins.dynamic_resources import DynamicResources
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.shared.extended_resources import ExtendedResources

from tests.scheduler.plugins.cluster import Cluster
from tests.scheduler.plugins.refusal import refusal
from tests.scheduler.plugins.unasked_client import UnaskedClient

GPU = "example.com/gpu"
CLASS = DeviceClass("gpu", extended_resource_name=GPU)
CREATES = "dynamic_resource_allocation_resourceclaim_creates_total"
FINALIZER = "resource.kubernetes.io/delete-protection"


def asking(name: str, *containers: ContainerRequests) -> Pod:
    wanted = containers or (ContainerRequests("main", {"cpu": 100, GPU: 1}),)
    requests = {each: 1 for container in wanted for each in container.requests}
    return Pod(name, uid=name, requests=requests, containers=wanted)


@pytest.fixture
def one(cluster: Cluster) -> Cluster:
    """A class, and two devices on a node with room."""
    cluster.node("a").set_node(Node("a", allocatable={"cpu": 4000, "pods": 10}))
    cluster.have(CLASS, ResourceSlice("slice", "driver", "a", node_name="a", devices=(Device("x"), Device("y"))))
    return cluster


def filtered(cluster: Cluster, plugin: DynamicResources, pod: Pod) -> tuple[CycleState, Status | None]:
    state, answer = cluster.begin(plugin, pod)
    assert answer is None
    return state, plugin.filter(state, pod, cluster.nodes[0])


def decided(cluster: Cluster, plugin: DynamicResources, pod: Pod) -> CycleState:
    state, answer = filtered(cluster, plugin, pod)
    assert answer is None
    assert plugin.reserve(state, pod, "a") is None
    return state


def claims(cluster: Cluster) -> list[ResourceClaim]:
    return list(cluster.listers.all(ResourceClaim))


def wanted(claim: ResourceClaim) -> Mapping[str, int]:
    return {each.name: each.exactly.count for each in claim.requests if each.exactly is not None}


def test_a_claim_is_made_before_the_pod_is_bound_and_told_in_its_status(one: Cluster) -> None:
    plugin, pod = DynamicResources(one.handle), asking("p")
    assert one.run(plugin.pre_bind(decided(one, plugin, pod), pod, "a")) is None

    [claim] = claims(one)
    assert claim.name.startswith("p-extended-resources-")
    assert (claim.owner_uid, claim.for_extended_resources) == ("p", True)
    assert wanted(claim) == {"container-0-request-1": 1}
    assert claim.allocation is not None
    assert [each.id.device for each in claim.allocation.devices] == ["x"]
    assert [each.uid for each in claim.reserved_for] == ["p"]
    assert claim.finalizers == (FINALIZER,)
    mapping = RequestMapping("main", GPU, "container-0-request-1")
    assert one.pods["p"].extended_claim == ExtendedClaim(claim.name, (mapping,))


def test_what_a_pod_is_about_to_get_others_do_not_whatever_their_profile(one: Cluster) -> None:
    plugin, other = DynamicResources(one.handle), DynamicResources(one.handle)
    states = [decided(one, plugin, asking(name)) for name in "pq"]
    assert refusal(filtered(one, other, asking("r"))[1]).message == "cannot allocate all claims"
    plugin.unreserve(states[0], asking("p"), "a")
    assert filtered(one, other, asking("r"))[1] is None


def test_a_claim_that_was_made_is_deleted_when_the_pod_is_not_bound_after_all(one: Cluster) -> None:
    plugin, pod = DynamicResources(one.handle), asking("p")
    state = decided(one, plugin, pod)
    one.run(plugin.pre_bind(state, pod, "a"))
    plugin.unreserve(state, pod, "a")
    one.settle()
    assert claims(one) == []


def test_claims_that_are_created_are_counted_and_those_that_are_refused_as_failures(one: Cluster) -> None:
    class Refusing(UnaskedClient):
        async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
            raise ApiError("exceeded quota", "Forbidden", 403)

    metrics = SchedulerMetrics()
    one.handle.measures = metrics
    pods = asking("p"), asking("q")
    plugin = DynamicResources(one.handle)
    assert one.run(plugin.pre_bind(decided(one, plugin, pods[0]), pods[0], "a")) is None
    state = decided(one, plugin, pods[1])
    one.handle.client = Refusing()
    failed = one.run(plugin.pre_bind(state, pods[1], "a"))
    assert refusal(failed).message == "create claim for extended resources default/: exceeded quota"
    assert [line for line in metrics.exposition().decode().splitlines() if line.startswith(CREATES)] == [
        f'{CREATES}{{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="failure"}} 1.0',
        f'{CREATES}{{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="success"}} 1.0',
    ]


def test_a_claim_that_an_earlier_attempt_left_is_deleted_first(one: Cluster) -> None:
    plugin, pod = DynamicResources(one.handle), asking("p")
    one.run(plugin.pre_bind(decided(one, plugin, pod), pod, "a"))
    state, answer = filtered(one, plugin, pod)
    assert refusal(answer).message == "cannot schedule extended resource claim"
    ended = plugin.post_filter(state, pod, {})
    assert refusal(ended.status).message == "deletion of ResourceClaim completed"
    one.settle()
    assert claims(one) == []
    assert filtered(one, plugin, pod)[1] is None


def test_a_node_that_counts_the_resource_needs_no_claim(one: Cluster) -> None:
    plugin, pod = DynamicResources(one.handle), asking("p")
    one.nodes[0].set_node(Node("a", allocatable={"cpu": 4000, "pods": 10, GPU: 1}))
    state = decided(one, plugin, pod)
    assert one.run(plugin.pre_bind(state, pod, "a")) is None
    plugin.unreserve(state, pod, "a")
    one.settle()
    assert claims(one) == []


def test_fit_leaves_to_devices_what_the_node_does_not_count(one: Cluster) -> None:
    fit, node = NodeResourcesFit(one.handle), one.nodes[0]
    key = fit.filter_key(asking("p"))
    assert fit.filter(CycleState(), asking("p"), node) is None
    one.listers.remove(CLASS)
    assert refusal(fit.filter(CycleState(), asking("p"), node)).message == f"Insufficient {GPU}"
    assert fit.filter_key(asking("p")) != key
    node.set_node(Node("a", allocatable={"cpu": 4000, "pods": 10, GPU: 2}))
    node.add(replace(asking("q"), requests={GPU: 2}))
    one.have(CLASS)
    assert refusal(fit.filter(CycleState(), asking("p"), node)).message == f"Insufficient {GPU}"


def test_of_classes_that_stand_for_one_resource_the_newest_does_then_the_first_by_name(one: Cluster) -> None:
    resources = ExtendedResources(one.listers)
    one.have(replace(CLASS, name="b", creation_timestamp=2), replace(CLASS, name="c", creation_timestamp=2))
    assert resources.classes()[GPU].name == "b"
    assert resources.classes()["deviceclass.resource.kubernetes.io/gpu"].name == "gpu"
    one.listers.remove(one.shown(DeviceClass, "b"))
    assert resources.classes()[GPU].name == "c"


def test_pods_that_ask_for_nothing_that_a_class_stands_for_are_skipped(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    assert one.begin(plugin, Pod("p", uid="p", requests={"cpu": 1, "example.com/other": 1}))[1] == SKIP
    assert one.begin(plugin, Pod("p", uid="p", requests={GPU: 0}))[1] == SKIP
