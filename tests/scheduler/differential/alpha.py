"""Cases of devices with fields that are Alpha: kube-scheduler has their gates off and meets them nevertheless."""

from random import Random

from .builders import NAMESPACE, node
from .case import Object
from .claims import DRIVER, device_class, with_resource_claims
from .nodes import Made

_API = "resource.k8s.io/v1"
_SELECTORS = (
    f'device.attributes["{DRIVER}"].plain == 1',
    f'1 in device.attributes["{DRIVER}"].many',
    f'"many" in device.attributes["{DRIVER}"]',
    f'device.attributes["{DRIVER}"].many == 1',
)


def alpha(rng: Random) -> Made:
    """Attributes that are lists, compatibility groups, devices that need no preparation."""
    mark = rng.randrange(10_000)
    nodes = [node(f"n{i}") for i in range(rng.randint(1, 4))]
    slices = [each for i in range(len(nodes)) for each in _pool(rng, f"s{mark}-{i}", f"n{i}")]
    claims = [_claim(rng, f"c{i}") for i in range(4)]
    pods = [with_resource_claims(f"p{i}", [f"c{i}"]) for i in range(4)]
    return "dynamic-resources", [device_class("gpu"), *slices, *claims, *nodes], pods


def _pool(rng: Random, name: str, on: str) -> list[Object]:
    """Devices in one slice, or two; with counters, these are in another one."""
    counted = rng.random() < 0.4
    parts = [
        [_device(rng, f"d{part}{i}", counted) for i in range(rng.randint(1, 2))]
        for part in range(rng.choice((1, 1, 2)))
    ]
    counters = [{"name": "set", "counters": {"slots": {"value": "3"}}}]
    specs: list[Object] = [{"devices": devices} for devices in parts]
    specs += [{"sharedCounters": counters}] if counted else []
    pool = {"name": on, "generation": 1, "resourceSliceCount": len(specs)}
    slices = []
    for number, spec in enumerate(specs):
        whole = {"driver": DRIVER, "pool": pool, "nodeName": on, **spec}
        if rng.random() < 0.3:
            whole["skipNodeOperations"] = ["NodePrepareResources", "NodeUnprepareResources"]
        metadata = {"name": f"{name}-{number}"}
        slices.append({"apiVersion": _API, "kind": "ResourceSlice", "metadata": metadata, "spec": whole})
    return slices


def _device(rng: Random, name: str, counted: bool) -> Object:
    attributes: Object = {"plain": {"int": rng.randint(1, 2)}}
    if rng.random() < 0.5:
        attributes["many"] = {"ints": [1, rng.randint(2, 3)]} if rng.random() < 0.7 else {"int": 1}
    device: Object = {"name": name, "attributes": attributes}
    if counted:
        taken: Object = {"counterSet": "set", "counters": {"slots": {"value": "1"}}}
        if rng.random() < 0.25:
            taken["compatibilityGroups"] = ["group"]
        device["consumesCounters"] = [taken]
    return device


def _claim(rng: Random, name: str) -> Object:
    exactly: Object = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": rng.choice((1, 1, 2))}
    if rng.random() < 0.3:
        exactly["selectors"] = [{"cel": {"expression": rng.choice(_SELECTORS)}}]
    if rng.random() < 0.1:
        exactly |= {"allocationMode": "All"}
        del exactly["count"]
    devices: Object = {"requests": [{"name": "q0", "exactly": exactly}]}
    if rng.random() < 0.4:
        kind = rng.choice(("matchAttribute", "distinctAttribute"))
        devices["constraints"] = [{kind: f"{DRIVER}/{rng.choice(('many', 'plain'))}"}]
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": _API, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}
