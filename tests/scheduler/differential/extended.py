"""Cases of extended resources: those that nodes count, and those that devices stand for."""

from collections.abc import Sequence
from random import Random
from typing import Any

from .builders import container, node, pod
from .case import Object
from .claims import device_class, resource_claim, slice_of
from .nodes import Made
from .profiles import DEFAULT

_PLAIN, _LARGE, _OWN = "example.com/accelerator", "example.com/large", "deviceclass.resource.kubernetes.io/gpu"
_IS_LARGE = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'


def extended_resources(rng: Random) -> Made:
    """Nodes that count a resource, have devices for it, both or neither; containers of all kinds; claims beside."""
    profile = rng.choice((DEFAULT, "extended", "extended-scored"))
    mark = rng.randrange(10_000)
    classes = [_standing_for(_PLAIN, device_class("gpu")), _standing_for(_LARGE, device_class("big", _IS_LARGE))]
    count = rng.randint(1, 4)
    nodes = [node(f"n{i}", extended=_counted(rng)) for i in range(count)]
    slices = [slice_of(f"s{mark}-{i}", f"n{i}") for i in range(count) if rng.random() < 0.75]
    pods = [_pod(rng, f"p{i}") for i in range(3)]
    return profile, [*classes, *slices, *(resource_claim(f"c{i}", "gpu") for i in range(3)), *nodes], pods


def _standing_for(resource: str, device_class: Object) -> Object:
    return {**device_class, "spec": {**device_class["spec"], "extendedResourceName": resource}}


def _counted(rng: Random) -> dict[str, str]:
    return {name: str(rng.randint(0, 2)) for name in (_PLAIN, _LARGE) if rng.random() < 0.3}


def _pod(rng: Random, name: str) -> Object:
    """One with a claim of its own asks for nothing that a node counts: it would never be bound there."""
    claims = rng.random() < 0.25
    wanted = (_OWN,) if claims else (_PLAIN, _PLAIN, _LARGE, _OWN)
    containers = [_container(rng, f"c{i}", wanted) for i in range(rng.randint(1, 2))]
    spec: Any = {}
    if rng.random() < 0.5:
        early = [_container(rng, f"i{i}", wanted, always=rng.random() < 0.4) for i in range(rng.randint(1, 3))]
        spec["initContainers"] = early
    if claims:
        spec["resourceClaims"] = [{"name": "r0", "resourceClaimName": f"c{name[1:]}"}]
        containers[0]["resources"]["claims"] = [{"name": "r0"}]
    return pod(name, containers=containers, **spec)


def _container(rng: Random, name: str, wanted: Sequence[str], *, always: bool = False) -> Object:
    requests = {"cpu": "100m"}
    if rng.random() < 0.6:
        requests[rng.choice(wanted)] = str(rng.choice((1, 1, 1, 2)))
    if rng.random() < 0.1:
        requests[wanted[-1]] = "1"
    return container(name, requests, always=always)
