"""Devices and claims for them, read from the API's JSON."""

from typing import Any

from podtrail_scheduler.objects.decoding import decode
from podtrail_scheduler.objects.resource import (
    DeviceAttribute,
    DeviceId,
    DeviceTaint,
    DeviceTaintRule,
)

ONE = 10**9


def read(kind: str, spec: dict[str, Any], **more: Any) -> Any:
    metadata = {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    return decode({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec, **more})


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
