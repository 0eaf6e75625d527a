"""Cases of DynamicResources: devices in slices, classes and selectors in CEL, claims of one or several requests."""

from random import Random
from typing import Any

from podtrail_scheduler.objects.quantities import parse_quantity

from .builders import ADMINISTRATORS, NAMESPACE, ZONE, container, expression, node, pod
from .case import Object
from .nodes import Made

DRIVER, NIC = "gpu.example.com", "nic.example.com"
EVERYWHERE = "fabric"
"""The pool of the devices that all nodes can use."""
_API = "resource.k8s.io/v1"
_ZONAL = "zonal"
_IN_ZONE = {"matchExpressions": [expression(ZONE, "In", "z0")]}
_MODELS = ("a100", "h100", "t4")


def dynamic_resources(rng: Random) -> Made:
    """Pods with claims of their own and with a shared one, claims that are absent or ask for too much."""
    mark = rng.randrange(10_000)
    nodes = [node(f"n{i}", labels={ZONE: f"z{i % 2}"}) for i in range(rng.randint(1, 5))]
    slices = [
        _slice(rng, f"s{mark}-{i}", each["metadata"]["name"]) for i, each in enumerate(nodes) if rng.random() < 0.85
    ]
    if rng.random() < 0.3:
        slices.append(_zonal_slice(rng, f"s{mark}-zone"))
    claims = [_claim(rng, f"c{i}") for i in range(4)]
    pods = []
    for i in range(4):
        names = [f"c{i}"] if rng.random() < 0.8 else [f"c{rng.randrange(4)}"]
        if rng.random() < 0.1:
            names.append("absent")
        pods.append(with_resource_claims(f"p{i}", names))
    return "dynamic-resources", [*_classes(), *slices, *claims, *nodes], pods


def with_resource_claims(name: str, claims: list[str], **spec: Any) -> Object:
    """A Pod whose container uses the claims."""
    used = container()
    used["resources"] = {"claims": [{"name": f"r{i}"} for i in range(len(claims))]}
    listed = [{"name": f"r{i}", "resourceClaimName": claim} for i, claim in enumerate(claims)]
    return pod(name, containers=[used], resourceClaims=listed, **spec)


EXTENDED, MAPPED = "<extended-resources>", "<mappings>"
"""Stand in an answer for the claim made for a Pod's extended resources, and for what of it is for which container."""


def may_have_devices(pod: Object) -> bool:
    """Whether a Pod has claims, or asks for extended resources."""
    containers = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    requests = (each.get("resources", {}).get("requests", {}) for each in containers)
    return "resourceClaims" in pod["spec"] or any("/" in name for each in requests for name in each)


def made_for(pod: Object, devices: tuple[str, ...]) -> Object:
    """The claim that was made for a Pod's extended resources, with these devices."""
    metadata = pod["metadata"]
    uid = f"{metadata['namespace']}/{metadata['name']}"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": uid, "controller": True}
    claim: Object = {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{metadata['name']}-extended-resources",
            "namespace": metadata["namespace"],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {}},
    }
    return allocated(claim, pod, devices)


def told(result: Object) -> str:
    """An allocated device in one line, with what is used of its capacity."""
    shares = sorted(result.get("consumedCapacity", {}).items())
    place = f"{result['request']} {result['pool']}/{result['device']}"
    return " ".join([place, *(f"{name}={parse_quantity(amount)}" for name, amount in shares)])


def allocated(claim: Object, pod: Object, devices: tuple[str, ...]) -> Object:
    """The claim with these devices (as `told`), used by the Pod."""
    results, places = [], {}
    for each in devices:
        request, place, *shares = each.split(" ")
        pool, _, device = place.partition("/")
        result: Object = {"request": request, "driver": NIC if pool == EVERYWHERE else DRIVER, "pool": pool}
        if shares:
            result |= {"shareID": each, "consumedCapacity": dict(share.split("=") for share in shares)}
        if claim["metadata"]["namespace"] == ADMINISTRATORS:
            result["adminAccess"] = True
        results.append({**result, "device": device})
        if pool != EVERYWHERE:
            places[pool] = _IN_ZONE if pool == _ZONAL else {"matchFields": [expression("metadata.name", "In", pool)]}
    allocation: Object = {"devices": {"results": results}}
    if places:
        term = {key: value for place in places.values() for key, value in place.items()}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [term]}
    metadata = pod["metadata"]
    users = [*claim.get("status", {}).get("reservedFor", ())]
    users.append({"resource": "pods", "name": metadata["name"], "uid": f"{metadata['namespace']}/{metadata['name']}"})
    return {**claim, "status": {"allocation": allocation, "reservedFor": users}}


def _classes() -> list[Object]:
    return [
        device_class("gpu"),
        device_class("big", f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'),
    ]


def device_class(name: str, selector: str = f'device.driver == "{DRIVER}"') -> Object:
    """A DeviceClass of the devices that meet an expression."""
    spec = {"selectors": [{"cel": {"expression": selector}}]}
    return {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def slice_of(name: str, node_name: str) -> Object:
    """A ResourceSlice with one device of a node."""
    return _of_pool(Random(name), name, node_name, {"nodeName": node_name})


def slice_with(name: str, node_name: str, devices: list[Object]) -> Object:
    """A ResourceSlice with some devices of a node."""
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node_name, "devices": devices}
    return {"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def resource_claim(name: str, device_class_name: str) -> Object:
    """A ResourceClaim for one device of a class."""
    exactly = {"deviceClassName": device_class_name, "allocationMode": "ExactCount", "count": 1}
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {"devices": {"requests": [{"name": "q0", "exactly": exactly}]}}
    return {"apiVersion": _API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def _slice(rng: Random, name: str, node_name: str) -> Object:
    return _of_pool(rng, name, node_name, {"nodeName": node_name})


def _zonal_slice(rng: Random, name: str) -> Object:
    return _of_pool(rng, name, _ZONAL, {"nodeSelector": {"nodeSelectorTerms": [_IN_ZONE]}})


def _of_pool(rng: Random, name: str, pool: str, where: Object) -> Object:
    devices: list[Object] = [
        {
            "name": f"d{i}",
            "attributes": {
                "model": {"string": rng.choice(_MODELS)},
                "index": {"int": i},
                "numa": {"int": rng.randrange(2)},
                "ecc": {"bool": rng.random() < 0.5},
            },
            "capacity": {"memory": {"value": rng.choice(("16Gi", "40Gi", "80Gi"))}},
        }
        for i in range(rng.randint(1, 4))
    ]
    for device in devices:
        if rng.random() < 0.1:
            device["taints"] = [{"key": "broken", "value": "x", "effect": "NoSchedule"}]
    spec = {"driver": DRIVER, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "devices": devices}
    return {"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {**spec, **where}}


def _claim(rng: Random, name: str) -> Object:
    requests: list[Object] = []
    for i in range(rng.choice((1, 1, 1, 2))):
        if rng.random() < 0.15:
            requests.append({"name": f"q{i}", "firstAvailable": [{**_exactly(rng), "name": f"o{j}"} for j in range(2)]})
        else:
            requests.append({"name": f"q{i}", "exactly": _exactly(rng)})
    devices: Object = {"requests": requests}
    if rng.random() < 0.2:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{rng.choice(('model', 'numa'))}"}]
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": _API, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def _exactly(rng: Random) -> Object:
    asked: Object = {"deviceClassName": rng.choice(("gpu", "gpu", "big", "unknown" if rng.random() < 0.1 else "gpu"))}
    if rng.random() < 0.1:
        asked["allocationMode"] = "All"
    else:
        asked |= {"allocationMode": "ExactCount", "count": rng.choice((1, 1, 1, 2, 3))}
    if rng.random() < 0.4:
        expressions = (
            f'device.attributes["{DRIVER}"].model == "{rng.choice(_MODELS)}"',
            f'device.attributes["{DRIVER}"].index > 0 && !device.attributes["{DRIVER}"].ecc',
            f'device.attributes["{DRIVER}"].model in ["a100", "h100"]',
            f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("20Gi"))',
        )
        asked["selectors"] = [{"cel": {"expression": rng.choice(expressions)}}]
    if rng.random() < 0.15:
        asked["tolerations"] = [{"key": "broken", "operator": "Exists", "effect": "NoSchedule"}]
    return asked
