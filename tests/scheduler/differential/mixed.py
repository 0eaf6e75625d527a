"""Cases for kube-scheduler's own profile: a bit of everything."""

from random import Random

from .builders import NAMESPACES, ZONE, container, expression, namespaces, node, pod, service
from .case import Object
from .nodes import Made
from .profiles import DEFAULT
from .spreading import affinity, selector
from .storage import claim, volume, with_claims

_APPS = ("web", "db", "cache")
_IMAGES = {f"registry.example/{app}:v1": size << 20 for app, size in zip(_APPS, (40, 300, 870), strict=True)}


def small(rng: Random) -> Made:
    """A few nodes, a few Pods."""
    return _mixed(rng, rng.randint(1, 8), 5)


def large(rng: Random) -> Made:
    """Up to thirty nodes."""
    return _mixed(rng, rng.randint(15, 30), 6)


def _mixed(rng: Random, count: int, waiting: int) -> Made:
    nodes = [node_of_a_cluster(rng, i) for i in range(count)]
    bound = [resident(rng, i, f"n{rng.randrange(count)}") for i in range(rng.randint(0, 2 * count))]
    services = [service(app, {"app": app}) for app in _APPS if rng.random() < 0.5]
    pods = [pod_of_an_app(rng, f"p{i}", resident=False) for i in range(waiting)]
    for each in pods:
        if rng.random() < 0.15:
            each["spec"] |= with_claims(rng.choice(("c0", "c1", "c2", "c0", "c1", "c2", "absent")))
    return DEFAULT, [*namespaces(), *services, *storage(rng), *nodes, *bound], pods


def storage(rng: Random) -> list[Object]:
    """Three bound claims, each with a volume of its zone."""
    mark = rng.randrange(10_000)
    objects = []
    for i in range(3):
        where = [expression(ZONE, "In", f"z{i}")]
        objects.append(volume(f"pv{mark}-{i}", f"c{i}", labels={ZONE: f"z{i}"}, nodes=where))
        mode = "ReadWriteOncePod" if i == 0 else "ReadWriteOnce"
        objects.append(claim(f"c{i}", f"pv{mark}-{i}", accessModes=[mode]))
    return objects


def node_of_a_cluster(rng: Random, number: int) -> Object:
    """One of several sizes, zones, taints and stores of images."""
    labels = {"disk": rng.choice(("ssd", "hdd")), "kubernetes.io/os": "linux"}
    if rng.random() < 0.95:
        labels[ZONE] = f"z{rng.randrange(3)}"
    taints = []
    if rng.random() < 0.2:
        taints.append({"key": "dedicated", "value": "db", "effect": "NoSchedule"})
    if rng.random() < 0.2:
        taints.append({"key": "slow", "effect": "PreferNoSchedule"})
    return node(
        f"n{number}",
        cpu=rng.choice(("2", "4", "7900m")),
        memory=rng.choice(("4Gi", "8Gi", "16000M")),
        labels=labels,
        taints=taints,
        unschedulable=rng.random() < 0.05,
        images={image: size for image, size in _IMAGES.items() if rng.random() < 0.4},
        extended={"example.com/gpu": "2"} if rng.random() < 0.2 else None,
    )


def resident(rng: Random, number: int, node: str) -> Object:
    """A Pod that runs there."""
    built = pod_of_an_app(rng, f"b{number}", resident=True, on=node)
    second = number * 37 % 3600  # no two alike: who would have to go is decided by nothing else in the end
    started = f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
    return {**built, "status": {"phase": "Running", "startTime": started}}


def pod_of_an_app(rng: Random, name: str, *, resident: bool, on: str | None = None) -> Object:
    """A Pod that runs on a node, or one that waits and may want more."""
    app = rng.choice(_APPS)
    requests = {"cpu": f"{rng.choice((100, 300, 700, 1100))}m", "memory": rng.choice(("128Mi", "500M", "2Gi"))}
    if rng.random() < 0.15:
        requests = {}
    if not resident and rng.random() < 0.1:
        requests["example.com/gpu"] = "1"
    ports = [{"containerPort": 9000, "hostPort": 9000}] if not resident and rng.random() < 0.1 else []
    spec: Object = {}
    if rng.random() < (0.15 if resident else 0.35):
        spec["affinity"] = affinity(rng)
    if rng.random() < 0.3:
        preferred = {
            "weight": 10,
            "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
        }
        spec.setdefault("affinity", {})["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [preferred]
        }
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}]
    if not resident and rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.randint(1, 2),
                "topologyKey": rng.choice((ZONE, "kubernetes.io/hostname")),
                "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": selector(rng),
            }
        ]
    if not resident and rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": "ssd"}
    priority = 0 if resident else rng.choice((0, 0, 0, 100))
    return pod(
        name,
        namespace=rng.choice(tuple(NAMESPACES)) if resident else "default",
        labels={"app": app},
        on=on,
        priority=priority,
        containers=[container("main", requests, image=rng.choice(tuple(_IMAGES)), ports=ports)],
        **spec,
    )
