"""Cases for kube-scheduler's own profile with little free: volumes, devices, budgets and room to be made at once."""

from random import Random

from .builders import ZONE, disruption_budget, namespaces, node
from .case import Object
from .claims import device_class, resource_claim, slice_of
from .mixed import pod_of_an_app, storage
from .nodes import Made
from .profiles import DEFAULT
from .storage import with_claims


def crowded(rng: Random) -> Made:
    """Small nodes that are nearly full, and a Pod of higher priority with claims of both kinds."""
    count = rng.randint(2, 7)
    nodes = [node(f"n{i}", cpu="2", memory="4Gi", labels={ZONE: f"z{i % 3}", "disk": "ssd"}) for i in range(count)]
    mark = rng.randrange(10_000)
    slices = [slice_of(f"s{mark}-{i}", f"n{i}") for i in range(count) if rng.random() < 0.6]
    bound = [_resident(rng, i, f"n{i % count}") for i in range(4 * count)]
    budgets = [disruption_budget(app, {"app": app}, rng.choice((0, 1))) for app in ("web", "db") if rng.random() < 0.5]
    objects = [
        *namespaces(),
        device_class("gpu"),
        *slices,
        resource_claim("d0", "gpu"),
        *budgets,
        *storage(rng),
        *nodes,
        *bound,
    ]
    return DEFAULT, objects, [_wanting(rng)]


def _resident(rng: Random, number: int, on: str) -> Object:
    built = pod_of_an_app(rng, f"b{number}", resident=True, on=on)
    built["spec"]["priority"] = rng.choice((0, 5, 10, 200))
    second = number * 37 % 3600
    if rng.random() < 0.1:
        built["spec"] |= with_claims(f"c{rng.randrange(3)}")
        built["metadata"]["namespace"] = "default"
    return {**built, "status": {"phase": "Running", "startTime": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"}}


def _wanting(rng: Random) -> Object:
    built = pod_of_an_app(rng, "p0", resident=False)
    spec = built["spec"]
    spec["priority"] = rng.choice((50, 100, 1000))
    if rng.random() < 0.35:
        spec |= with_claims(f"c{rng.randrange(3)}")
    if rng.random() < 0.35:
        spec["resourceClaims"] = [{"name": "r0", "resourceClaimName": "d0"}]
        spec["containers"][0].setdefault("resources", {})["claims"] = [{"name": "r0"}]
    return built
