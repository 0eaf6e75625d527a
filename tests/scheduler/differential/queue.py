"""Cases of what comes before and after a node is looked for: gates, the order of the queue, preemption."""

from random import Random

from .builders import ZONE, container, disruption_budget, expression, node, pod
from .case import Object
from .nodes import Made
from .storage import claim, with_claims


def scheduling_gates(rng: Random) -> Made:
    """Pods with gates, among those without."""
    nodes = [node(f"n{i}") for i in range(rng.randint(0, 3))]
    pods = []
    for i in range(4):
        gates = [{"name": f"example.com/{letter}"} for letter in rng.sample("abc", rng.randint(0, 3))]
        pods.append(pod(f"p{i}", schedulingGates=gates) if gates else pod(f"p{i}"))
    return "scheduling-gates", nodes, pods


def priority_sort(rng: Random) -> Made:
    """Pods that all wait when the scheduler starts: in which order they are attempted."""
    priorities = rng.sample(range(-50, 1000), rng.randint(4, 12))
    nodes = [node("n0", images={"registry.example/app:v1": 1 << 30})]
    return "priority-sort", nodes, [pod(f"p{i}", priority=priority) for i, priority in enumerate(priorities)]


def default_preemption(rng: Random) -> Made:
    """Full nodes, Pods of several priorities on them, some under a budget, and one or two that are more important."""
    nodes = [node(f"n{i}", cpu="2", memory="4Gi", pods="10") for i in range(rng.randint(1, 6))]
    bound = _filling(rng, nodes)
    budgets = [disruption_budget(name, {"app": name}, rng.choice((0, 0, 1, 2))) for name in "ab" if rng.random() < 0.5]
    pods = []
    for i in range(rng.choice((1, 1, 2))):
        spec: Object = {"preemptionPolicy": "Never"} if rng.random() < 0.1 else {}
        cpu = f"{rng.choice((300, 700, 1200, 1900, 2500))}m"
        pods.append(pod(f"p{i}", {"cpu": cpu, "memory": "64Mi"}, priority=rng.choice((50, 500, 1000)), **spec))
    return "preemption", [*budgets, *nodes, *bound], pods


def _filling(rng: Random, nodes: list[Object]) -> list[Object]:
    bound, number = [], 0
    alike = rng.random() < 0.5  # so that priorities alone do not tell which node it costs least
    started = rng.sample(range(10, 3600), 60)
    for each in nodes:
        left = 2000
        while left > 150 and number < 60:
            cpu = min(left, rng.choice((200, 300, 500, 900)))
            left -= cpu
            second = started[number]
            built = pod(
                f"b{number}",
                {"cpu": f"{cpu}m", "memory": "64Mi"},
                labels={"app": rng.choice("abc")},
                on=each["metadata"]["name"],
                priority=rng.choice((0, 10)) if alike else rng.choice((0, 10, 20, 30, 100, 600)) + rng.randrange(10),
                terminates=rng.random() < 0.05,
                started=f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z",
            )
            bound.append(built)
            number += 1
    return bound


def preemption_of_what_is_in_the_way(rng: Random) -> Made:
    """Room made where ports, spreading, anti-affinity or resources are in the way; nodes where it would not help."""
    nodes = []
    for i in range(rng.randint(2, 6)):
        taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
        labels = {ZONE: f"z{i % 2}", "disk": rng.choice(("ssd", "ssd", "hdd"))}
        nodes.append(node(f"n{i}", cpu="2", memory="4Gi", labels=labels, taints=taints))
    bound = _filling(rng, nodes)
    taken: set[str] = set()
    for each in bound:
        on = each["spec"]["nodeName"]
        if rng.random() < 0.3 and on not in taken:
            taken.add(on)
            requests = each["spec"]["containers"][0]["resources"]["requests"]
            each["spec"]["containers"] = [container("main", requests, ports=[_PORT])]
    labels = {"app": rng.choice("abc")}
    spec: Object = {}
    drawn = rng.randrange(6)
    claims: list[Object] = []
    ports = []
    if drawn == 0:
        ports = [_PORT]
    elif drawn == 1:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": rng.choice("abc")}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif drawn == 2:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }
        ]
    elif drawn == 3:
        claims = [claim("shared", accessModes=["ReadWriteOncePod"])]
        rng.choice(bound)["spec"] |= with_claims("shared")
        spec = with_claims("shared")
    elif drawn == 4:
        term = {"topologyKey": rng.choice((ZONE, "kubernetes.io/hostname")), "labelSelector": {"matchLabels": labels}}
        for each in rng.sample(bound, min(3, len(bound))):
            anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            each["spec"]["affinity"] = {"podAntiAffinity": anti}
    else:
        terms = [{"matchExpressions": [expression("disk", "In", "ssd")]}]
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    requests = {"cpu": f"{rng.choice((100, 600, 1500))}m"}
    preemptor = pod(
        "p0",
        labels=labels,
        priority=rng.choice((60, 1000)),
        containers=[container("main", requests, ports=ports)],
        **spec,
    )
    return "preemption-wide", [*claims, *nodes, *bound], [preemptor]


_PORT = {"containerPort": 9090, "hostPort": 9090, "protocol": "TCP"}
