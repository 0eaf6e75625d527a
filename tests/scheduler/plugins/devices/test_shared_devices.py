"""Devices that several claims share, each with a part of the capacity."""

from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.objects import Pod, PodResourceClaim
from podtrail_scheduler.objects.resource import (
    AllocatedDevice,
    Allocation,
    CounterConsumption,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
)
from podtrail_scheduler.plugins.device_allocation.capacity import share, suffices
from podtrail_scheduler.plugins.dynamic_resources import DynamicResources

from tests.scheduler.plugins.cluster import Cluster

DRIVER = "nic.example.com"
NIC = DeviceClass("nic")
ONE = 10**9
POD = Pod("p", uid="p", resource_claims=(PodResourceClaim("devices", "claim"),))
NOT_ALLOCATABLE = {"a": "cannot allocate all claims"}


def nic(name: str = "x", *, shared: bool = True, policy: RequestPolicy | None = None, **fields: Any) -> Device:
    capacity = DeviceCapacity(10 * ONE, policy or RequestPolicy())
    return Device(name, capacity={"bandwidth": capacity}, allow_multiple_allocations=shared, **fields)


def wants(amount: int | None, name: str = "r", count: int = 1) -> DeviceRequest:
    capacity = {} if amount is None else {"bandwidth": amount * ONE}
    return DeviceRequest(name, DeviceSpecification(name, "nic", capacity=capacity, count=count))


def claim(*requests: DeviceRequest, name: str = "claim", **fields: Any) -> ResourceClaim:
    return ResourceClaim(name, uid=name, requests=requests, **fields)


def has(amount: int) -> Allocation:
    place = DeviceId(DRIVER, "pool", "x")
    return Allocation((AllocatedDevice("r", place, consumed={"bandwidth": amount * ONE}),))


def offer(cluster: Cluster, *devices: Device, **fields: Any) -> None:
    cluster.node("a")
    cluster.have(NIC, ResourceSlice("slice", DRIVER, "pool", node_name="a", devices=devices, **fields))


@pytest.mark.parametrize(
    ("policy", "asked", "gets", "allowed"),
    [
        (RequestPolicy(), 3, 3, True),
        (RequestPolicy(), None, 10, True),
        (RequestPolicy(default=2 * ONE), None, 2, True),
        (RequestPolicy(valid_values=(2 * ONE, 4 * ONE)), 3, 4, True),
        (RequestPolicy(valid_values=(2 * ONE, 4 * ONE)), 5, 5, False),
        (RequestPolicy(minimum=2 * ONE), 1, 2, True),
        (RequestPolicy(minimum=2 * ONE, step=3 * ONE), 3, 5, True),
        (RequestPolicy(minimum=2 * ONE, step=3 * ONE), 5, 5, True),
        (RequestPolicy(minimum=2 * ONE, maximum=4 * ONE), 5, 5, False),
        (RequestPolicy(), 11, 11, False),
    ],
)
def test_a_request_gets_a_share_that_the_device_allows(
    policy: RequestPolicy, asked: int | None, gets: int, allowed: bool
) -> None:
    requested = {} if asked is None else {"bandwidth": asked * ONE}
    assert share(nic(policy=policy), requested) == {"bandwidth": gets * ONE}
    assert suffices(nic(policy=policy), requested, {}) is allowed


def test_a_shared_device_takes_its_counters_once(cluster: Cluster) -> None:
    partition = nic(consumes_counters=(CounterConsumption("card", {"ports": 1}),))
    offer(cluster, partition, pool_slices=2)
    counters = ResourceSlice("counters", DRIVER, "pool", pool_slices=2, node_name="a")
    cluster.have(replace(counters, shared_counters={"card": {"ports": 1}}))
    cluster.have(claim(wants(1, "one"), wants(1, "two")))
    assert cluster.refused(DynamicResources(cluster.handle), POD) == {}


def test_distinct_attributes_keep_the_devices_of_a_claim_apart(cluster: Cluster) -> None:
    offer(cluster, nic("x"), nic("y"))
    apart = DeviceConstraint(distinct_attribute=f"{DRIVER}/port")
    cluster.have(claim(wants(1, "one"), wants(1, "two"), constraints=(apart,)))
    plugin = DynamicResources(cluster.handle)
    assert cluster.refused(plugin, POD) == NOT_ALLOCATABLE
    ports = tuple(nic(name, attributes={"port": DeviceAttribute("string", name)}) for name in "xy")
    cluster.have(ResourceSlice("slice", DRIVER, "pool", node_name="a", devices=ports))
    assert cluster.refused(plugin, POD) == {}
    state, _ = cluster.begin(plugin, POD)
    plugin.filter(state, POD, cluster.nodes[0])
    plugin.reserve(state, POD, "a")
    cluster.run(plugin.pre_bind(state, POD, "a"))
    written = cluster.shown(ResourceClaim, "default/claim").allocation
    assert written is not None
    assert [each.id.device for each in written.devices] == ["x", "y"]


def test_the_share_is_written_with_an_identifier_of_its_own(cluster: Cluster) -> None:
    offer(cluster, nic(policy=RequestPolicy(default=ONE // 2)))
    cluster.have(claim(wants(None, "one"), wants(2, "two")))
    plugin = DynamicResources(cluster.handle)
    state, _ = cluster.begin(plugin, POD)
    plugin.filter(state, POD, cluster.nodes[0])
    plugin.reserve(state, POD, "a")
    assert cluster.run(plugin.pre_bind(state, POD, "a")) is None
    allocation = cluster.shown(ResourceClaim, "default/claim").allocation
    assert allocation is not None
    written = allocation.json["devices"]["results"]
    assert [each["consumedCapacity"] for each in written] == [{"bandwidth": "500m"}, {"bandwidth": "2"}]
    assert len({each["shareID"] for each in written}) == 2


def test_a_share_that_is_being_written_counts_once(cluster: Cluster) -> None:
    offer(cluster, nic())
    cluster.have(claim(wants(5)), claim(wants(1), name="second"), claim(wants(4), name="other"))
    both = replace(POD, resource_claims=(*POD.resource_claims, PodResourceClaim("more", "second")))
    plugin = DynamicResources(cluster.handle)
    state, _ = cluster.begin(plugin, both)
    plugin.filter(state, both, cluster.nodes[0])
    plugin.reserve(state, both, "a")
    other = Pod("q", uid="q", resource_claims=(PodResourceClaim("devices", "other"),))
    answers = []

    def look() -> None:
        answers.append(cluster.refused(plugin, other))
        if cluster.timeline.now() < 10_000_000:
            cluster.timeline.after(500_000, look)

    cluster.timeline.after(0, look)
    cluster.run(plugin.pre_bind(state, both, "a"))
    assert answers
    assert not any(answers)
