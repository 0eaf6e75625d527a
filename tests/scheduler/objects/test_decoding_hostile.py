"""Whatever an API server sends for an object, it is read or refused with a ValueError."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from podtrail_scheduler.objects.decoding import decode

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
CONTAINER = {
    "name": "c",
    "image": "i",
    "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}},
    "ports": [{"hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP"}],
    "restartPolicy": "Always",
    "restartPolicyRules": [{"action": "Restart"}],
    "volumeMounts": [{"bindMountOptions": {}}],
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "5",
        "ownerReferences": [
            {"kind": "ReplicaSet", "name": "r", "uid": "1", "apiVersion": "apps/v1", "controller": True}
        ],
    },
    "spec": {
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "overhead": {"cpu": "1m"},
        "resources": {"requests": {"cpu": "3"}},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SELECTOR]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": SELECTOR}],
            },
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": SELECTOR, "topologyKey": "z", "namespaces": ["x"], "namespaceSelector": {}}
                ],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {}}}
                ],
            },
        },
        "priority": 1,
        "schedulingGates": [{"name": "g"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "labelSelector": {}, "minDomains": 1}],
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
            {"name": "i", "image": {"reference": "r"}},
            {"name": "r", "rbd": {"monitors": ["a"], "pool": "p", "image": "i"}},
        ],
        "resourceClaims": [{"name": "c", "resourceClaimName": "x"}],
        "terminationGracePeriodSeconds": 1,
    },
    "status": {
        "phase": "Pending",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}],
        "resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}],
        "extendedResourceClaimStatus": {
            "resourceClaimName": "x",
            "requestMappings": [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}],
        },
        "containerStatuses": [
            {"name": "c", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
        ],
    },
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}},
    "spec": {"taints": [{"key": "a", "value": "", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {
        "allocatable": {"cpu": "1", "pods": "110"},
        "images": [{"names": ["a"], "sizeBytes": 5}],
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
ODD: tuple[Any, ...] = (
    *(None, 0, -1, 10**400, 1.5, float("nan"), float("inf"), True, "", "x", "1e99", "9" * 5000, "\ud800"),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", [], [None], [1], ["x"], [[]], [{}], {}, {"a": None}),
    *({"a": []}, {"a": 1}, [{"name": []}], [{"name": {}}]),
)


def other(api_version: str, kind: str, spec: Any = None, **fields: Any) -> dict[str, Any]:
    owner = {"kind": "Pod", "name": "r", "uid": "1", "apiVersion": "v1", "controller": True}
    metadata = POD["metadata"] | {"ownerReferences": [owner], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec or {}, **fields}


_TERMS = {"nodeSelectorTerms": [SELECTOR]}
_TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
_DEVICE: dict[str, Any] = {
    "name": "d",
    "attributes": {"model": {"string": "a"}, "index": {"int": 1}, "ecc": {"bool": True}, "v": {"version": "1.0.0"}},
    "capacity": {"memory": {"value": "1Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi"]}}},
    "taints": [_TAINT],
    "consumesCounters": [{"counterSet": "c", "counters": {"x": {"value": "1"}}}],
    "nodeSelector": _TERMS,
    "allowMultipleAllocations": True,
}
_EXACTLY = {
    "deviceClassName": "c",
    "selectors": [{"cel": {"expression": "true"}}],
    "allocationMode": "ExactCount",
    "count": 1,
    "adminAccess": False,
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "capacity": {"requests": {"memory": "1Gi"}},
}
_RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "x", "consumedCapacity": {"memory": "1Gi"}}
_DEVICES = {
    "requests": [{"name": "r", "exactly": _EXACTLY}, {"name": "f", "firstAvailable": [{"name": "s", **_EXACTLY}]}],
    "constraints": [{"requests": ["r"], "matchAttribute": "d/model", "distinctAttribute": "d/index"}],
    "config": [{"requests": ["r"], "opaque": {"driver": "d", "parameters": {}}}],
}
_CLAIM = {
    "volumeName": "v",
    "storageClassName": "s",
    "accessModes": ["ReadWriteOnce"],
    "volumeMode": "Block",
    "selector": SELECTOR,
    "resources": {"requests": {"storage": "1Gi"}},
}
_VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "claimRef": {"namespace": "n", "name": "c", "uid": "u"},
    "nodeAffinity": {"required": _TERMS},
    "csi": {"driver": "d", "volumeHandle": "h"},
}
_ALLOCATED = {
    "allocation": {"devices": {"results": [_RESULT]}, "nodeSelector": _TERMS},
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    "devices": [{"driver": "d", "pool": "p", "device": "x", "conditions": [{"type": "t", "status": "True"}]}],
}
_TOPOLOGY = {"key": "z", "values": ["a"]}
OTHERS = [
    other("v1", "PersistentVolumeClaim", _CLAIM, status={"phase": "Bound"}),
    other("v1", "PersistentVolume", _VOLUME, status={"phase": "Bound"}),
    other("v1", "Service", {"selector": {"a": "b"}}),
    other("v1", "Namespace"),
    other("apps/v1", "ReplicaSet", {"selector": SELECTOR}),
    other("policy/v1", "PodDisruptionBudget", {"selector": SELECTOR}, status={"disruptionsAllowed": 1}),
    other(
        *("storage.k8s.io/v1", "StorageClass"),
        provisioner="p",
        volumeBindingMode="Immediate",
        allowedTopologies=[{"matchLabelExpressions": [_TOPOLOGY]}],
    ),
    other(
        *("storage.k8s.io/v1", "CSINode"),
        {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["z"], "allocatable": {"count": 1}}]},
    ),
    other("storage.k8s.io/v1", "CSIDriver", {"storageCapacity": True, "attachRequired": True}),
    other(
        *("storage.k8s.io/v1", "CSIStorageCapacity"),
        storageClassName="s",
        nodeTopology=SELECTOR,
        capacity="1Gi",
        maximumVolumeSize="1Gi",
    ),
    other(
        *("storage.k8s.io/v1", "VolumeAttachment"),
        {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    ),
    other("resource.k8s.io/v1", "ResourceClaim", {"devices": _DEVICES}, status=_ALLOCATED),
    other(
        *("resource.k8s.io/v1", "ResourceSlice"),
        {
            "driver": "d",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [_DEVICE],
            "sharedCounters": [{"name": "c", "counters": {"x": {"value": "1"}}}],
        },
    ),
    other(
        *("resource.k8s.io/v1", "DeviceClass"),
        {"selectors": [{"cel": {"expression": "true"}}], "config": [], "extendedResourceName": "example.com/gpu"},
    ),
]


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths(each, (*path, key))


def altered(whole: Any, path: tuple[str | int, ...], odd: Any) -> Any:
    if not path:
        return odd
    changed = copy.copy(whole)
    changed[path[0]] = altered(whole[path[0]], path[1:], odd)
    return changed


@pytest.mark.parametrize("whole", [POD, NODE, *OTHERS], ids=lambda each: each["kind"])
def test_an_odd_value_anywhere_is_read_or_refused_and_never_fatal(whole: dict[str, Any]) -> None:
    decode(whole)
    refused = 0
    for path in paths(whole):
        for odd in ODD:
            try:
                decode(altered(whole, path, odd))
            except ValueError:
                refused += 1
    assert refused


@pytest.mark.parametrize(
    ("path", "odd", "complaint"),
    [
        (("metadata", "ownerReferences"), [7], r"metadata.ownerReferences\[0\]: 7 is not a mapping"),
        (("metadata", "ownerReferences"), 7, r"metadata.ownerReferences: 7 is not a list"),
        (("status", "conditions"), ["x"], r"status.conditions\[0\]: 'x' is not a mapping"),
        (("spec", "containers", 0, "restartPolicyRules"), [None], r"restartPolicyRules\[0\]: None is not a mapping"),
        (("spec", "containers", 0, "volumeMounts"), "x", r"volumeMounts: 'x' is not a list"),
        (("kind",), {}, r"kind: {} is not a string"),
    ],
)
def test_what_is_of_the_wrong_type_is_named(path: tuple[str | int, ...], odd: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode(altered(POD, path, odd))


def test_thousands_of_everything_are_read() -> None:
    many = copy.deepcopy(POD)
    for name in ("containers", "initContainers", "tolerations", "topologySpreadConstraints", "volumes"):
        many["spec"][name] *= 2000
    assert len(json.dumps(many)) > 1 << 20
    assert decode(many)
