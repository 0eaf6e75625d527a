"""More cases of DynamicResources: pools of several slices, versions and errors in CEL, constraints, shared counters."""

from random import Random

from .builders import NAMESPACE, ZONE, node
from .case import Object
from .claims import DRIVER, EVERYWHERE, NIC, device_class, with_resource_claims
from .nodes import Made

_API = "resource.k8s.io/v1"
_SELECTORS = (
    'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.0"))',
    'device.attributes["gpu.example.com"].version.compareTo(semver("1.10.0")) < 0',
    'device.attributes["gpu.example.com"].model.startsWith("a") || device.attributes["gpu.example.com"].index >= 2',
    'device.attributes["gpu.example.com"].model.matches("^[ah]1")',
    'has(device.attributes["gpu.example.com"].rare) && device.attributes["gpu.example.com"].rare',
    'device.attributes["gpu.example.com"].rare',
    'device.attributes["gpu.example.com"].?rare.orValue(false)',
    '"rare" in device.attributes["gpu.example.com"]',
    'device.attributes["gpu.example.com"].index % 2 == 0 ? true : device.attributes["gpu.example.com"].numa == 1',
    'device.capacity["gpu.example.com"].memory.sub(quantity("10Gi")).isLessThan(quantity("20Gi"))',
    'device.capacity["gpu.example.com"].memory == quantity("40Gi")',
    'device.capacity["gpu.example.com"].memory.asInteger() > 17179869184',
    'cel.bind(a, device.attributes["gpu.example.com"], a.index < 2 && a.model != "t4")',
    '["a100", "h100"].exists(m, m == device.attributes["gpu.example.com"].model)',
    '!(device.attributes["gpu.example.com"].model in ["t4"]) && size(device.attributes["gpu.example.com"].model) == 4',
    'device.attributes["other.example.com"].index == 0',
    'device.driver.endsWith(".example.com") && int(device.attributes["gpu.example.com"].index) * 2 <= 4',
)


def devices_in_detail(rng: Random) -> Made:
    """Pods with claims of one to three requests."""
    mark = rng.randrange(10_000)
    nodes = [node(f"n{i}", labels={ZONE: f"z{i % 2}"}) for i in range(rng.randint(1, 4))]
    slices = [each for i in range(len(nodes)) for each in _pool(rng, f"s{mark}-{i}", f"n{i}")]
    if rng.random() < 0.4:
        slices.append(_slice(f"s{mark}-nic", NIC, EVERYWHERE, {"allNodes": True}, _nics(rng)))
    classes = [device_class("gpu"), device_class("nic", f'device.driver == "{NIC}"'), device_class("any", "true")]
    claims = [_claim(rng, f"c{i}") for i in range(4)]
    pods = []
    for i in range(4):
        names = [f"c{i}"] if rng.random() < 0.75 else sorted({f"c{rng.randrange(4)}" for _ in range(2)})
        pods.append(with_resource_claims(f"p{i}", names))
    return "dynamic-resources", [*classes, *slices, *claims, *nodes], pods


def _slice(
    name: str, driver: str, pool: str, where: Object, devices: list[Object], generation: int = 1, count: int = 1
) -> Object:
    described = {"name": pool, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": described, **where, "devices": devices}
    return {"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def _pool(rng: Random, name: str, on: str) -> list[Object]:
    where, drawn = {"nodeName": on}, rng.random()
    if drawn < 0.15:  # one slice of two has come so far
        return [_slice(name, DRIVER, on, where, _devices(rng), count=2)]
    if drawn < 0.35:
        first, second = _devices(rng, "a"), _devices(rng, "b")
        return [_slice(f"{name}-{half}", DRIVER, on, where, each, count=2) for half, each in ((0, first), (1, second))]
    if drawn < 0.5:  # what is left of an earlier generation counts no more
        return [
            _slice(f"{name}-old", DRIVER, on, where, _devices(rng, "old"), generation=1),
            _slice(f"{name}-new", DRIVER, on, where, _devices(rng), generation=2),
        ]
    if drawn < 0.65:
        return _partitioned(rng, name, on)
    return [_slice(name, DRIVER, on, where, _devices(rng))]


def _devices(rng: Random, prefix: str = "d") -> list[Object]:
    return [_device(rng, f"{prefix}{i}", i) for i in range(rng.randint(1, 4))]


def _device(rng: Random, name: str, index: int) -> Object:
    attributes: Object = {
        "model": {"string": rng.choice(("a100", "h100", "t4"))},
        "index": {"int": index},
        "numa": {"int": rng.randrange(2)},
        "version": {"version": rng.choice(("1.2.0", "1.10.0", "1.3.0-rc.1"))},
    }
    if rng.random() < 0.3:
        attributes["rare"] = {"bool": rng.random() < 0.7}
    built: Object = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": rng.choice(("16Gi", "40Gi"))}},
    }
    if rng.random() < 0.15:
        effect = rng.choice(("NoSchedule", "NoExecute"))
        built["taints"] = [{"key": rng.choice(("broken", "old")), "value": "x", "effect": effect}]
    return built


def _partitioned(rng: Random, name: str, on: str) -> list[Object]:
    devices = _devices(rng)
    for each in devices:
        counters = {"memory": {"value": rng.choice(("10Gi", "20Gi", "40Gi"))}}
        each["consumesCounters"] = [{"counterSet": "card", "counters": counters}]
    shared = _slice(f"{name}-counters", DRIVER, on, {"nodeName": on}, [], count=2)
    del shared["spec"]["devices"]
    shared["spec"]["sharedCounters"] = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    return [shared, _slice(name, DRIVER, on, {"nodeName": on}, devices, count=2)]


def _nics(rng: Random) -> list[Object]:
    return [
        {"name": f"nic{i}", "attributes": {"gpu.example.com/numa": {"int": rng.randrange(2)}}}
        for i in range(rng.randint(1, 3))
    ]


def _claim(rng: Random, name: str) -> Object:
    requests: list[Object] = []
    for i in range(rng.choice((1, 1, 2, 2, 3))):
        if rng.random() < 0.2:
            options = [{**_wanted(rng), "name": f"o{j}"} for j in range(rng.randint(2, 3))]
            requests.append({"name": f"q{i}", "firstAvailable": options})
        else:
            requests.append({"name": f"q{i}", "exactly": _wanted(rng)})
    devices: Object = {"requests": requests}
    if rng.random() < 0.35:
        constraint: Object = {"matchAttribute": f"{DRIVER}/{rng.choice(('model', 'numa', 'numa', 'rare'))}"}
        if rng.random() < 0.5:
            constraint["requests"] = [each["name"] for each in requests[:2]]
        devices["constraints"] = [constraint]
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": _API, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def _wanted(rng: Random) -> Object:
    asked: Object = {"deviceClassName": rng.choice(("gpu", "gpu", "gpu", "nic", "any"))}
    if rng.random() < 0.12:
        asked["allocationMode"] = "All"
    else:
        asked |= {"allocationMode": "ExactCount", "count": rng.choice((1, 1, 1, 2))}
    if rng.random() < 0.4:
        asked["selectors"] = [{"cel": {"expression": rng.choice(_SELECTORS)}} for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.2:
        key = rng.choice(("broken", "old"))
        asked["tolerations"] = [rng.choice(({"key": key, "operator": "Exists"}, {"operator": "Exists"}))]
    return asked
