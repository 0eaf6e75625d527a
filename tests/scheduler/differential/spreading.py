"""Cases of the plugins that look at the Pods of other nodes: PodTopologySpread and InterPodAffinity."""

from random import Random

from .builders import HOST, NAMESPACES, REGION, ZONE, expression, namespaces, node, pod, service
from .case import Object
from .nodes import Made

_APPS = ("web", "db", "cache")


def topology(rng: Random, count: int) -> list[Object]:
    """Nodes in zones and regions, some without, some tainted."""
    nodes = []
    for i in range(count):
        labels = {"disk": rng.choice(("ssd", "hdd"))}
        if rng.random() < 0.9:
            zone = rng.randrange(3)
            labels |= {ZONE: f"z{zone}", REGION: f"r{zone // 2}"}
        taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if rng.random() < 0.15 else []
        nodes.append(node(f"n{i}", labels=labels, taints=taints))
    return nodes


def residents(rng: Random, nodes: list[Object], count: int, spaces: tuple[str, ...]) -> list[Object]:
    """Pods of three apps in two versions."""
    return [
        pod(
            f"b{i}",
            namespace=rng.choice(spaces),
            labels={"app": rng.choice(_APPS), "version": rng.choice("12")},
            on=rng.choice(nodes)["metadata"]["name"],
            phase=rng.choice(("Succeeded", "Failed")) if rng.random() < 0.05 else None,
            terminates=rng.random() < 0.08,
        )
        for i in range(count)
    ]


def pod_topology_spread(rng: Random) -> Made:
    """Constraints with every field, and constraints by default."""
    nodes = topology(rng, rng.randint(3, 12))
    profile = rng.choice(("spread", "spread", "spread", "spread-listed"))
    bound = residents(rng, nodes, rng.randint(0, 16), ("default", "default", "team-a"))
    by_default = profile == "spread-listed" or rng.random() < 0.25
    pods = []
    for i in range(4):
        spec: Object = {}
        if not by_default:
            spec["topologySpreadConstraints"] = _constraints(rng)
        if rng.random() < 0.3:
            spec["nodeSelector"] = {"disk": "ssd"}
        if rng.random() < 0.3:
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        pods.append(pod(f"p{i}", labels={"app": rng.choice(_APPS), "version": rng.choice("12")}, **spec))
    services = [service(app, {"app": app}) for app in _APPS[:2]] if by_default else []
    return profile, [*nodes, *services, *bound], pods


def _constraints(rng: Random) -> list[Object]:
    chosen: dict[tuple[str, str], Object] = {}
    for _ in range(rng.randint(1, 3)):
        constraint = _constraint(rng)
        chosen[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
    return list(chosen.values())


def _constraint(rng: Random) -> Object:
    constraint: Object = {
        "maxSkew": rng.choice((1, 1, 2, 3)),
        "topologyKey": rng.choice((ZONE, HOST, REGION, "absent")) if rng.random() < 0.9 else "disk",
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
    }
    if rng.random() < 0.95:
        constraint["labelSelector"] = selector(rng)
    if rng.random() < 0.25 and constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        constraint["labelSelector"] = selector(rng)
        constraint["matchLabelKeys"] = rng.choice((["version"], ["version", "absent"]))
    if rng.random() < 0.35:
        constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.35:
        constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    return constraint


def selector(rng: Random) -> Object:
    """By label, by expressions, or by nothing, which means all."""
    drawn = rng.random()
    if drawn < 0.6:
        return {"matchLabels": {"app": rng.choice(_APPS)}}
    if drawn < 0.9:
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = rng.sample(_APPS, 2) if operator in {"In", "NotIn"} else ()
        return {"matchExpressions": [expression("app", operator, *values)]}
    return {}


def inter_pod_affinity(rng: Random) -> Made:
    """Terms of the Pod and of those that run, required and preferred, by namespaces and their labels."""
    profile = rng.choice(("affinity", "affinity", "affinity", "affinity-hard", "affinity-ignoring"))
    nodes = topology(rng, rng.randint(2, 10))
    bound = residents(rng, nodes, rng.randint(0, 10), tuple(NAMESPACES))
    for each in bound:
        if rng.random() < 0.5:
            each["spec"]["affinity"] = affinity(rng)
    pods = []
    for i in range(4):
        spec: Object = {"affinity": affinity(rng)} if rng.random() < 0.85 else {}
        labels = {"app": rng.choice(_APPS), "version": rng.choice("12")}
        pods.append(pod(f"p{i}", labels=labels, namespace=rng.choice(("default", "team-a")), **spec))
    return profile, [*namespaces(), *nodes, *bound], pods


def affinity(rng: Random) -> Object:
    """podAffinity and podAntiAffinity, required and preferred."""
    whole: Object = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.4:
            continue
        half: Object = {}
        if rng.random() < 0.45:
            half["requiredDuringSchedulingIgnoredDuringExecution"] = [affinity_term(rng)]
        if rng.random() < 0.6:
            half["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 100), "podAffinityTerm": affinity_term(rng)} for _ in range(rng.randint(1, 2))
            ]
        if half:
            whole[kind] = half
    return whole


def affinity_term(rng: Random) -> Object:
    """A term that may name namespaces, select them, or mean those of its own."""
    term: Object = {"topologyKey": rng.choice((ZONE, HOST, REGION))}
    if rng.random() < 0.95:
        term["labelSelector"] = selector(rng)
    if rng.random() < 0.15:
        term["labelSelector"] = selector(rng)
        term[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    drawn = rng.random()
    if drawn < 0.2:
        term["namespaces"] = rng.sample(tuple(NAMESPACES), 2)
    elif drawn < 0.35:
        term["namespaceSelector"] = {"matchLabels": {"stage": "prod"}}
    elif drawn < 0.45:
        term["namespaceSelector"] = {}
    elif drawn < 0.55:
        term |= {"namespaces": ["team-c"], "namespaceSelector": {"matchLabels": {"team": "b"}}}
    return term
