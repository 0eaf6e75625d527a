"""DynamicResources: which nodes have devices for a Pod's claims."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.configuration.args import DynamicResourcesArgs
from podtrail_scheduler.framework.events import EventResource
from podtrail_scheduler.framework.status import Code, unresolvable
from podtrail_scheduler.objects import (
    HOSTNAME,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodResourceClaim,
    Requirement,
)
from podtrail_scheduler.objects.decoding import decode_resource_claim
from podtrail_scheduler.objects.resource import (
    AllocatedDevice,
    Allocation,
    ConsumerReference,
    CounterConsumption,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from podtrail_scheduler.plugins.dynamic_resources import DynamicResources

from tests.scheduler.plugins.cluster import Cluster
from tests.scheduler.plugins.refusal import refusal

DRIVER = "gpu.example.com"
GPU = DeviceClass("gpu", (f"device.driver == '{DRIVER}'",))
NOT_ALLOCATABLE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
POD = Pod("p", uid="p", resource_claims=(PodResourceClaim("devices", "claim"),))


def device(name: str, **fields: Any) -> Device:
    named = ("model", "rack")
    attributes = {key: DeviceAttribute("string", fields.pop(key)) for key in named if key in fields}
    return Device(name, attributes=attributes, **fields)


def offers(node: str, *devices: Device | str, **fields: Any) -> ResourceSlice:
    made = tuple(device(each) if isinstance(each, str) else each for each in devices)
    return ResourceSlice(f"slice-{node}", DRIVER, node, node_name=node, devices=made, **fields)


def wants(name: str = "gpus", **fields: Any) -> DeviceRequest:
    return DeviceRequest(name, DeviceSpecification(name, "gpu", **fields))


def claim(*requests: DeviceRequest, name: str = "claim", **fields: Any) -> ResourceClaim:
    return ResourceClaim(name, uid=name, requests=requests or (wants(),), **fields)


def has(*devices: DeviceId, node: str = "", **fields: Any) -> Allocation:
    here = NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (node,)),))
    return Allocation(
        tuple(AllocatedDevice("gpus", each, **fields) for each in devices), NodeSelector((here,)) if node else None
    )


def in_pool(pool: str, name: str) -> DeviceId:
    return DeviceId(DRIVER, pool, name)


def nodes(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.node(name, {HOSTNAME: name})


def refused(cluster: Cluster, pod: Pod = POD) -> dict[str, str]:
    answers: dict[str, str] = cluster.refused(DynamicResources(cluster.handle), pod)
    return answers


def test_a_rule_taints_the_devices_that_it_selects(cluster: Cluster) -> None:
    cluster.have(GPU, claim(), offers("a", "x"), offers("b", "x"))
    nodes(cluster, "a", "b")
    cluster.have(DeviceTaintRule("none", DeviceTaint("k")))
    assert refused(cluster) == {}
    cluster.have(DeviceTaintRule("pool", DeviceTaint("k"), DeviceId(DRIVER, "a", "")))
    assert refused(cluster) == {"a": NOT_ALLOCATABLE}
    cluster.have(DeviceTaintRule("all", DeviceTaint("k"), DeviceId("", "", "")))
    assert refused(cluster) == {"a": NOT_ALLOCATABLE, "b": NOT_ALLOCATABLE}


def test_devices_are_where_their_slice_or_they_themselves_say(cluster: Cluster) -> None:
    rack = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, "In", ("a",)),)),))
    cluster.have(GPU, claim())
    nodes(cluster, "a", "b")
    by_selector = replace(offers("", "x"), node_selector=rack)
    cluster.have(by_selector)
    assert refused(cluster) == {"b": NOT_ALLOCATABLE}
    cluster.have(replace(by_selector, node_selector=None, all_nodes=True))
    assert refused(cluster) == {}
    each = (device("x", node_name="b"), device("y", node_selector=NodeSelector(())))
    cluster.have(replace(by_selector, node_selector=None, per_device_node_selection=True, devices=each))
    assert refused(cluster) == {"a": NOT_ALLOCATABLE}


def test_a_pool_with_contradictions_is_told_when_nothing_else_fits(cluster: Cluster) -> None:
    cluster.have(GPU, claim(), offers("a", "x", "x"))
    nodes(cluster, "a")
    assert refused(cluster) == {"a": "invalid resource pools were encountered"}


def test_an_allocated_claim_is_used_where_its_devices_are(cluster: Cluster) -> None:
    cluster.have(GPU, claim(allocation=has(in_pool("a", "x"), node="a"), reserved_for=(ConsumerReference("q", "q"),)))
    nodes(cluster, "a", "b")
    assert refused(cluster) == {"b": NOT_AVAILABLE}


@pytest.mark.parametrize(
    ("pod", "objects", "message"),
    [
        (POD, [], 'could not find ResourceClaim "default/claim"'),
        (POD, [claim(deletion_timestamp=1)], 'resourceclaim "claim" is being deleted'),
        (POD, [claim()], "request gpus: device class gpu does not exist"),
        (POD, [GPU, claim(DeviceRequest("r"))], "resource claim default/claim, request r: unknown request type"),
        (
            replace(POD, resource_claims=(PodResourceClaim("d", "", "template"),)),
            [],
            'pod "default/p": ResourceClaim not created yet',
        ),
        (
            replace(POD, resource_claims=(PodResourceClaim("d", "", "template"),), claim_statuses={"d": "claim"}),
            [claim(owner_uid="another")],
            "ResourceClaim default/claim was not created for Pod default/p (Pod is not owner)",
        ),
    ],
    ids=["missing", "going", "no class", "unknown request", "not made yet", "made for another"],
)
def test_a_claim_that_cannot_be_used_refuses_the_pod_for_good(
    cluster: Cluster, pod: Pod, objects: list[Any], message: str
) -> None:
    cluster.have(*objects)
    status = refusal(cluster.begin(DynamicResources(cluster.handle), pod)[1])
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == message


def test_pods_wait_outside_the_queue_for_their_claims(cluster: Cluster) -> None:
    plugin = DynamicResources(cluster.handle)
    status = plugin.pre_enqueue(POD)
    assert status is not None
    assert status.message == 'could not find ResourceClaim "default/claim"'
    cluster.have(claim())
    assert plugin.pre_enqueue(POD) is None


@pytest.mark.parametrize(
    ("pod", "objects", "message"),
    [
        (POD, [], "Waiting for resource claim 'claim' to be present"),
        (
            POD,
            [claim(deletion_timestamp=1)],
            "Waiting for resource claim 'claim', which is being deleted, to be present again",
        ),
        (
            replace(POD, resource_claims=(PodResourceClaim("gpu", "", "template"),)),
            [],
            "Waiting for resource claim 'gpu' to be created from its template",
        ),
        (
            replace(POD, resource_claims=(PodResourceClaim("d", "", "template"),), claim_statuses={"d": "claim"}),
            [claim(owner_uid="another")],
            "Waiting for resource claim 'claim' to be this pod's own: it was created for another",
        ),
    ],
    ids=["missing", "going", "not made yet", "made for another"],
)
def test_users_are_told_what_is_waited_for_where_pre_enqueue_writes_the_status(
    cluster: Cluster, pod: Pod, objects: list[Any], message: str
) -> None:
    cluster.have(*objects)
    plugin = DynamicResources(cluster.handle)
    without = plugin.pre_enqueue(pod)
    assert without == refusal(cluster.begin(plugin, pod)[1])
    cluster.handle.pre_enqueue_pod_status = True
    assert plugin.pre_enqueue(pod) == unresolvable(message)
    assert refusal(cluster.begin(plugin, pod)[1]) == without


def test_a_search_without_end_is_given_up(cluster: Cluster) -> None:
    class Late(Timeline):
        def now(self) -> int:
            self.spend(1_000_000_000)
            return super().now()

    cluster.handle.clock = Late(0, "test")
    cluster.have(GPU, claim(wants(count=20)), offers("a", *(f"d{index}" for index in range(40))))
    nodes(cluster, "a")
    plugin = DynamicResources(cluster.handle, DynamicResourcesArgs())
    state, _ = cluster.begin(plugin, POD)
    status = refusal(plugin.filter(state, POD, cluster.nodes[0]))
    assert (status.code, status.message) == (Code.ERROR, "node a: timed out trying to allocate devices")


def test_hints_look_for_claims_that_come_and_devices_that_go_free(
    cluster: Cluster, hopeful: Callable[..., bool]
) -> None:
    plugin = DynamicResources(cluster.handle)
    mine, other = claim(), claim(name="other")
    taken = replace(other, allocation=has(in_pool("a", "x")))
    cluster.have(mine)
    assert hopeful(plugin, POD, EventResource.RESOURCE_CLAIM, None, mine)
    assert not hopeful(plugin, POD, EventResource.RESOURCE_CLAIM, None, other)
    assert hopeful(plugin, POD, EventResource.RESOURCE_CLAIM, taken, other)
    assert hopeful(plugin, POD, EventResource.RESOURCE_CLAIM, taken, None)
    assert not hopeful(plugin, POD, EventResource.RESOURCE_CLAIM, other, None)
    assert not hopeful(plugin, POD, EventResource.RESOURCE_CLAIM, mine, replace(mine, resource_version="9"))
    generated = replace(POD, resource_claims=(PodResourceClaim("d", "", "template"),))
    assert not hopeful(plugin, POD, EventResource.TARGET_POD, POD, generated)
    assert hopeful(plugin, POD, EventResource.TARGET_POD, generated, replace(generated, claim_statuses={"d": ""}))


def test_devices_that_need_no_preparation_are_usable_only_where_the_kubelet_knows(cluster: Cluster) -> None:
    for name, features in (("a", frozenset[str]()), ("b", frozenset({"DRAOptionalNodeOperations"}))):
        cluster.node(name).set_node(Node(name, declared_features=features))
    result = {"request": "gpus", "driver": DRIVER, "pool": "p", "device": "x", "skipNodeOperations": ["*"]}
    allocated = {"allocation": {"devices": {"results": [result]}}}
    metadata = {"name": "claim", "namespace": "default", "uid": "claim"}
    cluster.have(decode_resource_claim({"metadata": metadata, "status": allocated}))
    assert cluster.refused(DynamicResources(cluster.handle), POD) == {"a": NOT_AVAILABLE}


def test_partitions_of_a_device_share_its_counters(cluster: Cluster) -> None:
    def half(name: str) -> Device:
        return device(name, consumes_counters=(CounterConsumption("card", {"memory": 20}),))

    cluster.have(GPU, claim(wants(count=2)))
    for node, memory in (("a", 40), ("b", 30)):
        cluster.have(offers(node, half("x"), half("y"), half("z"), pool_slices=2))
        shared = {"card": {"memory": memory}}
        cluster.have(
            ResourceSlice(f"counters-{node}", DRIVER, node, pool_slices=2, node_name=node, shared_counters=shared)
        )
    nodes(cluster, "a", "b")
    assert refused(cluster) == {"b": NOT_ALLOCATABLE}
    cluster.have(claim(name="other", allocation=has(in_pool("a", "z"))))
    assert refused(cluster) == {"a": NOT_ALLOCATABLE, "b": NOT_ALLOCATABLE}


def test_tainted_devices_are_for_requests_that_tolerate_them(cluster: Cluster) -> None:
    tainted = device("x", taints=(DeviceTaint("broken"),))
    cluster.have(GPU, claim(), offers("a", tainted), offers("b", device("x", taints=(DeviceTaint("k", "", "None"),))))
    nodes(cluster, "a", "b")
    assert refused(cluster) == {"a": NOT_ALLOCATABLE}
    cluster.have(claim(wants(tolerations=(DeviceToleration("broken", "Exists"),))))
    assert refused(cluster) == {}
