"""Updates of Pods and Nodes become events as specific as can be."""

from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.objects import ApiObject, Namespace, Node, PersistentVolume, Pod, Taint, Toleration
from podtrail_scheduler.objects.resource import DeviceTaint, DeviceTaintRule
from podtrail_scheduler.queueing.changes import (
    node_scheduling_properties_change,
    object_change,
    pod_scheduling_properties_change,
)

POD = Pod("a", requests={"cpu": 100}, scheduling_gates=("quota", "team"))
NODE = Node("n", unschedulable=True, conditions=(("Ready", "True"),), taints=(Taint("k"),))


@pytest.mark.parametrize(
    ("changed", "labels"),
    [
        ({"labels": {"app": "web"}}, ["TargetPodUpdatePodLabel"]),
        ({"requests": {"cpu": 50}}, ["TargetPodUpdatePodScaleDown"]),
        ({"requests": {"cpu": 200}}, ["TargetPodUpdatePodScaleUp"]),
        ({"requests": {"memory": 1}}, ["TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"]),
        ({"requests": {"cpu": 50, "memory": 1}}, ["TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"]),
        ({"scheduling_gates": ("team",)}, ["TargetPodUpdate"]),
        ({"scheduling_gates": ()}, ["TargetPodUpdatePodSchedulingGatesEliminated"]),
        ({"tolerations": (Toleration("k"),)}, ["TargetPodUpdatePodToleration"]),
        ({"claim_statuses": {"gpu": "gpu-x"}}, ["TargetPodUpdatePodGeneratedResourceClaim"]),
        ({"annotations": {"a": "b"}}, ["TargetPodUpdate"]),
    ],
)
def test_what_changed_in_a_pod(changed: dict[str, Any], labels: list[str]) -> None:
    events = pod_scheduling_properties_change(POD, replace(POD, **changed), target=True)
    assert [event.label for event in events] == labels


def test_whose_update_it_is() -> None:
    assigned = replace(POD, node_name="n")
    assert [
        pod_scheduling_properties_change(POD, POD, target=False)[0].label,
        pod_scheduling_properties_change(assigned, assigned, target=False)[0].label,
    ] == ["UnscheduledPodUpdate", "AssignedPodUpdate"]


@pytest.mark.parametrize(
    ("changed", "labels"),
    [
        ({"unschedulable": False}, ["NodeUpdateNodeTaint"]),
        ({"allocatable": {"cpu": 1}}, ["NodeUpdateNodeAllocatable"]),
        ({"labels": {"zone": "a"}, "taints": ()}, ["NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]),
        ({"conditions": (("Ready", "False"),)}, ["NodeUpdateNodeCondition"]),
        ({"annotations": {"a": "b"}}, ["NodeUpdateNodeAnnotation"]),
        ({"declared_features": frozenset(["x"])}, ["NodeUpdateNodeDeclaredFeature"]),
        ({"resource_version": "7"}, []),
    ],
)
def test_what_changed_in_a_node(changed: dict[str, Any], labels: list[str]) -> None:
    assert [event.label for event in node_scheduling_properties_change(NODE, replace(NODE, **changed))] == labels


def test_cordoning_a_node_makes_nobody_schedulable() -> None:
    node = Node("n")
    assert node_scheduling_properties_change(node, replace(node, unschedulable=True)) == []


VOLUME, RULE = PersistentVolume("v"), DeviceTaintRule("r", DeviceTaint("k"))


@pytest.mark.parametrize(
    ("old", "new", "label"),
    [
        (None, VOLUME, "PersistentVolumeAdd"),
        (VOLUME, VOLUME, "PersistentVolumeUpdate"),
        (VOLUME, None, "PersistentVolumeDelete"),
        (None, RULE, "resource.k8s.io/ResourceSliceUpdate"),
        (RULE, None, "resource.k8s.io/ResourceSliceUpdate"),
        (None, Namespace("n"), None),
    ],
    ids=["came", "changed", "went", "taints came", "taints went", "nobody waits for it"],
)
def test_what_happened_to_another_object(old: ApiObject | None, new: ApiObject | None, label: str | None) -> None:
    event = object_change(old, new)
    assert (event and event.label) == label
