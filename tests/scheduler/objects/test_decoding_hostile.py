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


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths(each, (*path, key))


def altered(whole: Any, path: tuple[str | int, ...], odd: Any) -> Any:
    whole = here = copy.deepcopy(whole)
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = odd
    return whole


@pytest.mark.parametrize("whole", [POD, NODE], ids=lambda each: each["kind"])
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
