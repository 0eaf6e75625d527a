"""DynamicResources after the decision: devices kept, claims written, both given back. In virtual time."""

from dataclasses import replace

import pytest
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.status import Code, Status
from podtrail_scheduler.objects import HOSTNAME, NodeSelector, NodeSelectorTerm, Pod, PodResourceClaim, Requirement
from podtrail_scheduler.objects.resource import (
    AllocatedDevice,
    Allocation,
    ConsumerReference,
    Device,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    ResourceClaim,
    ResourceSlice,
)
from podtrail_scheduler.plugins.dynamic_resources import DynamicResources

from tests.scheduler.plugins.cluster import Cluster
from tests.scheduler.plugins.refusal import refusal

DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"
PARAMETERS = {"opaque": {"driver": DRIVER, "parameters": {"mode": "shared"}}}
GPU = DeviceClass("gpu", config=(PARAMETERS,))
CLAIM = ResourceClaim("claim", uid="c", requests=(DeviceRequest("r", DeviceSpecification("r", "gpu")),))
SLICE = ResourceSlice("slice", DRIVER, "pool", node_name="a", devices=(Device("x"),))


def user(name: str, claim: str = "claim") -> Pod:
    return Pod(name, uid=name, resource_claims=(PodResourceClaim("devices", claim),))


@pytest.fixture
def one(cluster: Cluster) -> Cluster:
    """One device on one node, and a claim for one."""
    cluster.node("a", {HOSTNAME: "a"})
    cluster.node("b", {HOSTNAME: "b"})
    cluster.have(GPU, SLICE, CLAIM)
    return cluster


def filtered(cluster: Cluster, plugin: DynamicResources, pod: Pod) -> tuple[CycleState, Status | None]:
    state, answer = cluster.begin(plugin, pod)
    if answer is not None:
        return state, answer
    return state, plugin.filter(state, pod, cluster.nodes[0])


def reserved(cluster: Cluster, plugin: DynamicResources, pod: Pod) -> CycleState:
    state, answer = filtered(cluster, plugin, pod)
    assert answer is None
    assert plugin.reserve(state, pod, "a") is None
    return state


def current(cluster: Cluster) -> ResourceClaim:
    return cluster.shown(ResourceClaim, "default/claim")


def test_devices_are_taken_from_reserve_on_and_given_back_by_unreserve(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    one.have(replace(CLAIM, name="other", uid="o"))
    state = reserved(one, plugin, user("p"))
    _, status = filtered(one, plugin, user("q", "other"))
    assert status is not None
    assert status.message == "cannot allocate all claims"
    plugin.unreserve(state, user("p"), "a")
    assert filtered(one, plugin, user("q", "other"))[1] is None


def test_a_claim_that_another_pod_is_about_to_get_devices_for_is_waited_for(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    reserved(one, plugin, user("p"))
    _, status = filtered(one, plugin, user("q"))
    assert status is not None
    assert status.message == "resource claim default/claim is in the process of being allocated"


def test_allocation_reservation_and_finalizer_are_written_before_the_pod_is_bound(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    state = reserved(one, plugin, user("p"))
    assert plugin.pre_bind_pre_flight(state, user("p"), "a") is None
    assert one.run(plugin.pre_bind(state, user("p"), "a")) is None
    claim = current(one)
    assert claim.finalizers == (FINALIZER,)
    assert claim.reserved_for == (ConsumerReference("p", "p"),)
    assert claim.allocation is not None
    assert claim.allocation.json == {
        "devices": {
            "results": [{"request": "r", "driver": DRIVER, "pool": "pool", "device": "x"}],
            "config": [{"source": "FromClass", **PARAMETERS}],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
        },
        "allocationTimestamp": "1970-01-01T00:00:00Z",
    }


def test_what_was_written_counts_before_the_watch_shows_it(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    one.have(replace(CLAIM, name="other", uid="o"))
    state = reserved(one, plugin, user("p"))
    answers: list[tuple[Allocation | None, Status | None]] = []

    async def write() -> None:
        await plugin.pre_bind(state, user("p"), "a")
        answers.append((current(one).allocation, filtered(one, plugin, user("q", "other"))[1]))

    one.run(write())
    [(shown, status)] = answers
    assert shown is None
    assert refusal(status).message == "cannot allocate all claims"


def test_a_second_pod_shares_the_devices_of_a_claim(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    for name in ("p", "q"):
        state = reserved(one, plugin, user(name))
        assert one.run(plugin.pre_bind(state, user(name), "a")) is None
    assert [each.name for each in current(one).reserved_for] == ["p", "q"]


def test_a_pod_that_is_not_bound_in_the_end_gives_up_the_claim_which_keeps_its_devices(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    state = reserved(one, plugin, user("p"))
    one.run(plugin.pre_bind(state, user("p"), "a"))
    plugin.unreserve(state, user("p"), "a")
    one.settle()
    assert current(one).reserved_for == ()
    assert current(one).allocation is not None


def test_a_claim_is_given_up_as_it_is_by_then(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    state = reserved(one, plugin, user("p"))
    one.run(plugin.pre_bind(state, user("p"), "a"))
    one.have(replace(current(one), finalizers=(FINALIZER, "another")))
    plugin.unreserve(state, user("p"), "a")
    one.settle()
    assert current(one).reserved_for == ()
    assert current(one).finalizers == (FINALIZER, "another")


def test_a_claim_that_was_changed_meanwhile_is_written_on_top_of_the_change(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    state = reserved(one, plugin, user("p"))
    one.objects.put(replace(current(one), finalizers=("another",)))
    assert one.run(plugin.pre_bind(state, user("p"), "a")) is None
    assert current(one).finalizers == ("another", FINALIZER)
    assert current(one).allocation is not None


def test_a_claim_that_somebody_else_allocated_meanwhile_fails_the_attempt(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    state = reserved(one, plugin, user("p"))
    theirs = Allocation((AllocatedDevice("r", DeviceId(DRIVER, "pool", "x")),))
    one.objects.put(replace(current(one), allocation=theirs))
    status = refusal(one.run(plugin.pre_bind(state, user("p"), "a")))
    assert (status.code, status.message) == (
        Code.ERROR,
        "claim default/claim got allocated elsewhere in the meantime",
    )


def test_a_claim_that_is_gone_fails_the_attempt(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    state = reserved(one, plugin, user("p"))
    one.objects.remove(current(one))
    status = refusal(one.run(plugin.pre_bind(state, user("p"), "a")))
    assert status.code is Code.ERROR


def test_devices_out_of_reach_are_given_back_when_no_node_fits(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    elsewhere = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, "In", ("gone",)),)),))
    allocation = Allocation((AllocatedDevice("r", DeviceId(DRIVER, "pool", "x")),), elsewhere)
    one.have(replace(CLAIM, allocation=allocation))
    state, status = filtered(one, plugin, user("p"))
    assert status is not None
    assert status.message == "resourceclaim not available on the node"
    result = plugin.post_filter(state, user("p"), {"a": status})
    assert result.status is not None
    assert result.status.message == "deallocation of ResourceClaim completed"
    one.settle()
    assert current(one).allocation is None


def test_devices_that_another_pod_uses_are_not_given_back(one: Cluster) -> None:
    plugin = DynamicResources(one.handle)
    elsewhere = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, "In", ("gone",)),)),))
    allocation = Allocation((AllocatedDevice("r", DeviceId(DRIVER, "pool", "x")),), elsewhere)
    one.have(replace(CLAIM, allocation=allocation, reserved_for=(ConsumerReference("q", "q"),)))
    state, status = filtered(one, plugin, user("p"))
    assert status is not None
    plugin.post_filter(state, user("p"), {"a": status})
    one.settle()
    assert current(one).allocation == allocation
