"""Cases of the plugins that look at a node's name, taints and labels."""

from random import Random

from .builders import HOST, ZONE, expression, node, pod
from .case import Object

Made = tuple[str, list[Object], list[Object]]
"""Profile, cluster, Pods to schedule."""

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node_name(rng: Random) -> Made:
    """NodeName alone: a Pod that waits to be scheduled names no node, so every node fits."""
    size = rng.randint(1, 900) << 20
    nodes = [node(f"n{i}", images={"registry.example/app:v1": size} if i else {}) for i in range(3)]
    return "node-name", nodes, [pod("p0"), pod("p1")]


def node_unschedulable(rng: Random) -> Made:
    """Cordoned nodes, and Pods that tolerate that."""
    nodes = [node(f"n{i}", unschedulable=rng.random() < 0.6) for i in range(rng.randint(1, 6))]
    tolerations = [
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
        {"key": "other", "operator": "Exists"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"},
    ]
    return "node-unschedulable", nodes, [pod("p0"), pod("p1", tolerations=[rng.choice(tolerations)])]


def sampling(rng: Random) -> Made:
    """More nodes than are looked at: how many that fit are enough."""
    nodes = [node(f"n{i}") for i in range(rng.randint(90, 320))]
    return rng.choice(("sampling", "sampling-60")), nodes, [pod("p0"), pod("p1")]


def taint_toleration(rng: Random) -> Made:
    """Taints of every effect, tolerations by key, value and effect, and what they score."""
    nodes = [node(f"n{i}", taints=_taints(rng)) for i in range(rng.randint(2, 9))]
    pods = [pod(f"p{i}", tolerations=[_toleration(rng) for _ in range(rng.randint(0, 4))]) for i in range(3)]
    return "taint-toleration", nodes, pods


def _taints(rng: Random) -> list[dict[str, str]]:
    chosen: dict[tuple[str, str], dict[str, str]] = {}
    for _ in range(rng.randint(0, 4)):
        taint = {"key": rng.choice("abc"), "effect": rng.choice(_EFFECTS)}
        if rng.random() < 0.7:
            taint["value"] = rng.choice(("1", "2", "30"))
        chosen[taint["key"], taint["effect"]] = taint
    return list(chosen.values())


def _toleration(rng: Random) -> Object:
    if rng.random() < 0.08:
        return {"operator": "Exists"}
    toleration: Object = {"key": rng.choice("abc")}
    if rng.random() < 0.5:
        toleration["operator"] = "Exists"
    else:
        toleration |= {"operator": "Equal", "value": rng.choice(("1", "2", "30"))}
    if rng.random() < 0.7:
        toleration["effect"] = rng.choice(_EFFECTS)
        if toleration["effect"] == "NoExecute" and rng.random() < 0.5:
            toleration["tolerationSeconds"] = rng.choice((0, 30))
    return toleration


def node_affinity(rng: Random) -> Made:
    """Node selectors, required terms with every operator and with matchFields, preferred terms."""
    nodes = [node(f"n{i}", labels=_labels(rng)) for i in range(rng.randint(2, 10))]
    pods = []
    for i in range(3):
        spec: Object = {}
        if rng.random() < 0.3:
            spec["nodeSelector"] = {rng.choice(("disk", "gen")): rng.choice(("ssd", "hdd", "3"))}
        affinity: Object = {}
        if rng.random() < 0.7:
            terms = [_term(rng, len(nodes)) for _ in range(rng.randint(1, 2))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if rng.random() < 0.7:
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 100), "preference": _term(rng, len(nodes)) if rng.random() < 0.95 else {}}
                for _ in range(rng.randint(1, 3))
            ]
        if affinity:
            spec["affinity"] = {"nodeAffinity": affinity}
        pods.append(pod(f"p{i}", **spec))
    return rng.choice(("node-affinity", "node-affinity", "node-affinity-added")), nodes, pods


def _labels(rng: Random) -> dict[str, str]:
    labels = {ZONE: rng.choice(("z1", "z2"))}
    if rng.random() < 0.8:
        labels["disk"] = rng.choice(("ssd", "hdd", "tape"))
    if rng.random() < 0.7:
        labels["gen"] = rng.choice(("1", "3", "07", "ten"))
    return labels


def _term(rng: Random, nodes: int) -> Object:
    if rng.random() < 0.2:
        field = expression("metadata.name", rng.choice(("In", "NotIn")), f"n{rng.randrange(nodes + 1)}")
        term: Object = {"matchFields": [field]}
        if rng.random() < 0.5:
            term["matchExpressions"] = [_requirement(rng)]
        return term
    return {"matchExpressions": [_requirement(rng) for _ in range(rng.randint(1, 2))]}


def _requirement(rng: Random) -> Object:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in {"Gt", "Lt"}:
        return expression("gen", operator, str(rng.randint(0, 8)))
    key = rng.choice(("disk", "gen", ZONE, HOST, "absent"))
    if operator in {"Exists", "DoesNotExist"}:
        return expression(key, operator)
    values = rng.sample(("ssd", "hdd", "3", "07", "z1", "n0", "n1"), rng.randint(1, 4))
    return expression(key, operator, *values)
