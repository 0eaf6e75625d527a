"""Devices that their drivers make ready for a Pod before it is bound. In virtual time."""

from dataclasses import replace

import pytest
from podtrail_scheduler.configuration.args import DynamicResourcesArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.status import Code, Status
from podtrail_scheduler.objects import Pod, PodResourceClaim
from podtrail_scheduler.objects.resource import (
    Device,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    DeviceStatus,
    ResourceClaim,
    ResourceSlice,
)
from podtrail_scheduler.plugins.dynamic_resources import DynamicResources

from tests.scheduler.plugins.cluster import Cluster

SECOND = 1_000_000_000
DRIVER = "fabric.example.com"
POD = Pod("p", uid="p", resource_claims=(PodResourceClaim("devices", "claim"),))
CLAIM = ResourceClaim("claim", uid="c", requests=(DeviceRequest("r", DeviceSpecification("r", "fabric")),))
SLOW = Device("slow", binding_conditions=("Attached",), binding_failure_conditions=("Broken",), binds_to_node=True)
HERE = ResourceSlice("slice", DRIVER, "pool", all_nodes=True, devices=(SLOW,))


@pytest.fixture
def fabric(cluster: Cluster) -> Cluster:
    """Two nodes, a device that is attached to one of them when it is allocated, and a claim."""
    cluster.node("a")
    cluster.node("b")
    cluster.have(DeviceClass("fabric"), HERE, CLAIM)
    return cluster


def reserved(cluster: Cluster, plugin: DynamicResources) -> CycleState:
    state, answer = cluster.begin(plugin, POD)
    assert answer is None
    assert plugin.filter(state, POD, cluster.nodes[0]) is None
    assert plugin.reserve(state, POD, "a") is None
    return state


def driver_says(cluster: Cluster, after: int, condition: str) -> None:
    def say() -> None:
        claim = cluster.shown(ResourceClaim, "default/claim")
        said = DeviceStatus(DeviceId(DRIVER, "pool", "slow"), {condition: ("True", "Done", "well")})
        cluster.objects.put(replace(claim, devices=(said,)))

    cluster.timeline.after(after, say)


def pre_bind(cluster: Cluster, plugin: DynamicResources, state: CycleState) -> Status | None:
    answer: Status | None = cluster.run(plugin.pre_bind(state, POD, "a"))
    return answer


def test_the_pod_waits_until_the_device_is_ready(fabric: Cluster) -> None:
    notes: list[str] = []
    fabric.handle.event = lambda regarding, related, kind, reason, action, note: notes.append(f"{reason}: {note}")
    plugin = DynamicResources(fabric.handle)
    state = reserved(fabric, plugin)
    driver_says(fabric, 30 * SECOND, "Attached")
    assert pre_bind(fabric, plugin, state) is None
    assert 30 * SECOND <= fabric.timeline.now() < 36 * SECOND
    assert notes == ["BindingConditionsPending: waiting for binding conditions for device on node a"]


def test_the_device_belongs_to_the_chosen_node_from_then_on(fabric: Cluster) -> None:
    plugin = DynamicResources(fabric.handle)
    state = reserved(fabric, plugin)
    driver_says(fabric, SECOND, "Attached")
    pre_bind(fabric, plugin, state)
    assert fabric.refused(plugin, POD) == {"b": "resourceclaim not available on the node"}


def test_a_driver_that_gives_up_ends_the_wait_and_the_claim_is_of_no_use(fabric: Cluster) -> None:
    plugin = DynamicResources(fabric.handle)
    state = reserved(fabric, plugin)
    driver_says(fabric, SECOND, "Broken")
    status = pre_bind(fabric, plugin, state)
    assert status is not None
    assert (status.code, status.message) == (
        Code.ERROR,
        'device binding failed: claim=claim, reason=Done, message="well"',
    )
    plugin.unreserve(state, POD, "a")
    fabric.settle()
    assert set(fabric.refused(plugin, POD)) == {"a", "b"}


def test_the_wait_ends_after_the_configured_time(fabric: Cluster) -> None:
    plugin = DynamicResources(fabric.handle, DynamicResourcesArgs(binding_timeout=20 * SECOND))
    state = reserved(fabric, plugin)
    status = pre_bind(fabric, plugin, state)
    assert status is not None
    assert status.message.startswith("device binding timeout: ")
    assert 20 * SECOND <= fabric.timeline.now() <= 26 * SECOND


def test_devices_that_are_ready_at_once_are_preferred(fabric: Cluster) -> None:
    fabric.have(ResourceSlice("ready", DRIVER, "zzz", all_nodes=True, devices=(Device("fast"),)))
    plugin = DynamicResources(fabric.handle)
    state = reserved(fabric, plugin)
    assert pre_bind(fabric, plugin, state) is None
    allocation = fabric.shown(ResourceClaim, "default/claim").allocation
    assert allocation is not None
    assert [each.id.device for each in allocation.devices] == ["fast"]


def test_without_the_gate_such_devices_are_not_chosen(fabric: Cluster) -> None:
    plugin = DynamicResources(fabric.handle, DynamicResourcesArgs(binding_timeout=None))
    assert set(fabric.refused(plugin, POD).values()) == {"cannot allocate all claims"}
