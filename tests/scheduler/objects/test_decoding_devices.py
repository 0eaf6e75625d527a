"""Devices and claims for them, read from the API's JSON."""

from typing import Any

from podtrail_scheduler.objects import NodeSelector, NodeSelectorTerm, Requirement
from podtrail_scheduler.objects.decoding import decode
from podtrail_scheduler.objects.resource import (
    AllocatedDevice,
    ConsumerReference,
    CounterConsumption,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceSpecification,
    DeviceStatus,
    DeviceTaint,
    DeviceTaintRule,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
)

ONE = 10**9


def read(kind: str, spec: dict[str, Any], **more: Any) -> Any:
    metadata = {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    return decode({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec, **more})


def test_a_slice_has_devices_with_all_that_is_asked_about_them() -> None:
    valid = {"default": "1", "validRange": {"min": "1", "step": "2"}}
    device = {
        "name": "d",
        "attributes": {"model": {"string": "A"}, "other.com/n": {"int": 3}, "ok": {"bool": True}},
        "capacity": {"memory": {"value": "1Gi", "requestPolicy": valid}},
        "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
        "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "2"}}}],
        "allowMultipleAllocations": True,
        "bindingConditions": ["Attached"],
    }
    pool = {"name": "p", "generation": 4, "resourceSliceCount": 2}
    counters = [{"name": "s", "counters": {"c": {"value": "500m"}}}]
    spec = {"driver": "dr", "pool": pool, "nodeName": "n", "devices": [device], "sharedCounters": counters}
    found = read("ResourceSlice", spec)
    assert isinstance(found, ResourceSlice)
    assert (found.driver, found.pool, found.pool_generation, found.pool_slices, found.node_name) == (
        "dr",
        "p",
        4,
        2,
        "n",
    )
    assert found.shared_counters == {"s": {"c": ONE // 2}}
    [made] = found.devices
    assert made.attributes == {
        "model": DeviceAttribute("string", "A"),
        "other.com/n": DeviceAttribute("int", 3),
        "ok": DeviceAttribute("bool", True),
    }
    policy = RequestPolicy(default=ONE, minimum=ONE, step=2 * ONE)
    assert made.capacity == {"memory": DeviceCapacity(1024**3 * ONE, policy)}
    assert made.taints == (DeviceTaint("k", "v", "NoExecute"),)
    assert made.consumes_counters == (CounterConsumption("s", {"c": 2 * ONE}),)
    assert made.allow_multiple_allocations
    assert made.binding_conditions == ("Attached",)


def test_a_class_has_expressions_and_keeps_its_configuration() -> None:
    config = {"opaque": {"driver": "dr", "parameters": {"a": 1}}}
    spec = {"selectors": [{"cel": {"expression": "true"}}], "config": [config]}
    assert read("DeviceClass", spec) == DeviceClass("x", ("true",), (config,), "7")


def test_a_claim_has_requests_constraints_and_what_became_of_it() -> None:
    exactly = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}], "count": 2}
    first = [{"name": "s", "deviceClassName": "c", "allocationMode": "All"}]
    devices = {
        "requests": [{"name": "r", "exactly": exactly}, {"name": "f", "firstAvailable": first}],
        "constraints": [{"matchAttribute": "d/a", "requests": ["r"]}, {"distinctAttribute": "d/b"}],
    }
    place = {"driver": "dr", "pool": "p", "device": "d"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    allocation = {
        "devices": {"results": [{"request": "r", **place, "shareID": "1", "consumedCapacity": {"m": "2"}}]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "allocationTimestamp": "1970-01-01T00:00:02Z",
    }
    conditions = [{"type": "Ready", "status": "True", "reason": "R", "message": "M"}]
    status = {
        "allocation": allocation,
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}],
        "devices": [{**place, "conditions": conditions}],
    }
    claim = read("ResourceClaim", {"devices": devices}, status=status)
    assert isinstance(claim, ResourceClaim)
    exact, either = claim.requests
    assert exact.exactly == DeviceSpecification("r", "c", ("true",), count=2)
    assert either.exactly is None
    assert either.first_available == (DeviceSpecification("s", "c", allocation_mode="All"),)
    assert claim.constraints == (
        DeviceConstraint("d/a", frozenset(("r",))),
        DeviceConstraint(distinct_attribute="d/b"),
    )
    found = DeviceId("dr", "p", "d")
    assert claim.allocation is not None
    assert claim.allocation.devices == (AllocatedDevice("r", found, consumed={"m": 2 * ONE}),)
    here = NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("n",)),))
    assert claim.allocation.node_selector == NodeSelector((here,))
    assert claim.allocation.timestamp == 2 * ONE
    assert claim.allocation.json == allocation
    assert claim.reserved_for == (ConsumerReference("pu", "p"),)
    assert claim.devices == (DeviceStatus(found, {"Ready": ("True", "R", "M")}),)


def test_a_rule_taints_what_its_selector_names() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    found = read("DeviceTaintRule", {"taint": taint, "deviceSelector": {"driver": "dr"}})
    assert found == DeviceTaintRule("x", DeviceTaint("k"), DeviceId("dr", "", ""), "7")
    assert read("DeviceTaintRule", {"taint": taint}).selector is None


def test_an_attribute_of_an_unknown_kind_is_one_that_nothing_can_be_said_about() -> None:
    device = {"name": "d", "attributes": {"a": {"bytes": "x"}, "b": {"ints": [1, 2]}, "c": {"int": 1}}}
    attributes = (
        read("ResourceSlice", {"driver": "dr", "pool": {"name": "p"}, "devices": [device]}).devices[0].attributes
    )
    assert attributes == {
        "a": DeviceAttribute("", ""),
        "b": DeviceAttribute("ints", (1, 2)),
        "c": DeviceAttribute("int", 1),
    }
    assert [each.comparable for each in attributes.values()] == [False, False, True]
