"""Cases of DynamicResources in which claims use one device: by shares of its capacity, and as administrators."""

from random import Random

from .builders import ADMINISTRATORS, NAMESPACE, node
from .case import Object
from .claims import DRIVER, device_class, slice_with, with_resource_claims
from .nodes import Made


def shared_devices(rng: Random) -> Made:
    """Cards with bandwidth to share, or whole; claims that say how much, how many, and from different cards."""
    mark = rng.randrange(10_000)
    nodes = [node(f"n{i}") for i in range(rng.randint(1, 3))]
    slices = [slice_with(f"s{mark}-{i}", f"n{i}", _cards(rng)) for i in range(len(nodes))]
    claims, pods = [], []
    for i in range(5):
        namespace = ADMINISTRATORS if rng.random() < 0.2 else NAMESPACE
        claims.append(_claim(rng, f"c{i}", namespace))
        pods.append(with_resource_claims(f"p{i}", [f"c{i}"], namespace=namespace))
    return "dynamic-resources", [device_class("gpu"), *slices, *claims, *nodes], pods


def _cards(rng: Random) -> list[Object]:
    return [_card(rng, i) for i in range(rng.randint(1, 3))]


def _card(rng: Random, index: int) -> Object:
    bandwidth: Object = {"value": rng.choice(("10G", "25G"))}
    drawn = rng.random()
    if drawn < 0.3:
        bandwidth["requestPolicy"] = {"default": "1G", "validRange": {"min": "1G", "step": "2G", "max": "9G"}}
    elif drawn < 0.5:
        bandwidth["requestPolicy"] = {"default": "5G", "validValues": ["5G", "10G"]}
    built: Object = {
        "name": f"d{index}",
        "attributes": {"index": {"int": index}, "port": {"string": rng.choice("ab")}},
        "capacity": {"bandwidth": bandwidth, "queues": {"value": "8"}},
    }
    if rng.random() < 0.8:
        built["allowMultipleAllocations"] = True
    return built if "requestPolicy" not in bandwidth or "allowMultipleAllocations" in built else _card(rng, index)


def _claim(rng: Random, name: str, namespace: str) -> Object:
    requests = [{"name": f"q{i}", "exactly": _wanted(rng)} for i in range(rng.choice((1, 1, 2)))]
    devices: Object = {"requests": requests}
    if namespace == ADMINISTRATORS:
        asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "adminAccess": True}
        devices["requests"] = [{**each, "exactly": asked} for each in requests]
    elif rng.random() < 0.3:
        devices["constraints"] = [{"distinctAttribute": f"{DRIVER}/{rng.choice(('index', 'port'))}"}]
    metadata = {"name": name, "namespace": namespace}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return {**kind, "metadata": metadata, "spec": {"devices": devices}}


def _wanted(rng: Random) -> Object:
    count = rng.choice((1, 1, 1, 2))
    asked: Object = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    if rng.random() < 0.7:
        wanted = {"bandwidth": rng.choice(("500M", "2G", "5G", "8G", "30G"))}
        if rng.random() < 0.3:
            wanted["queues"] = rng.choice(("2", "8"))
        asked["capacity"] = {"requests": wanted}
    if rng.random() < 0.15:
        asked["selectors"] = [{"cel": {"expression": "device.allowMultipleAllocations"}}]
    return asked
