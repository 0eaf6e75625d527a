"""Cases of the plugins that look at what a node has: ports, resources, images."""

from random import Random

from .builders import container, node, pod
from .case import Object
from .nodes import Made

_GPU, _FPGA, _IGNORED = "example.com/gpu", "example.com/fpga", "ignored.example/thing"


def node_ports(rng: Random) -> Made:
    """Host ports by protocol and host address, of containers, sidecars and init containers."""
    nodes = [node(f"n{i}") for i in range(rng.randint(1, 5))]
    bound = [
        pod(f"b{i}", on=rng.choice(nodes)["metadata"]["name"], containers=[container(ports=[_port(rng)])])
        for i in range(rng.randint(1, 8))
    ]
    pods = []
    for i in range(3):
        spec: Object = {}
        if rng.random() < 0.3:
            spec["initContainers"] = [container("early", ports=[_port(rng)], always=rng.random() < 0.6)]
        ports = {
            f"{port['hostPort']} {port['protocol']}": port for port in (_port(rng) for _ in range(rng.randint(0, 2)))
        }
        pods.append(pod(f"p{i}", containers=[container(ports=ports.values())], **spec))
    return "node-ports", [*nodes, *_without_clashes(bound)], pods


def _port(rng: Random) -> Object:
    number = rng.choice((8080, 8081))
    protocol = rng.choice(("TCP", "TCP", "UDP", "SCTP"))
    port: Object = {"containerPort": number, "hostPort": number, "protocol": protocol}
    if rng.random() < 0.5:
        port["hostIP"] = rng.choice(("0.0.0.0", "127.0.0.1", "10.1.1.1"))
    return port


def _without_clashes(bound: list[Object]) -> list[Object]:
    """One of several Pods of a node that hold the same port of the same address."""
    held: dict[str, Object] = {}
    for each in bound:
        (port,) = each["spec"]["containers"][0]["ports"]
        held[f"{each['spec']['nodeName']} {sorted(port.items())}"] = each
    return list(held.values())


def node_resources_fit(rng: Random) -> Made:
    """Every kind of request there is, by each of the scoring strategies."""
    profile = rng.choice(("fit-least", "fit-least", "fit-most", "fit-ratio", "fit-ignored"))
    nodes = sized_nodes(rng, rng.randint(2, 10))
    return profile, [*nodes, *_bound(rng, nodes)], [_requesting(rng, f"p{i}") for i in range(4)]


def balanced_allocation(rng: Random) -> Made:
    """How evenly the resources of a node would be used."""
    profile = rng.choice(("balanced", "balanced", "balanced-extended"))
    nodes = sized_nodes(rng, rng.randint(2, 10))
    return profile, [*nodes, *_bound(rng, nodes)], [_requesting(rng, f"p{i}") for i in range(4)]


def image_locality(rng: Random) -> Made:
    """Images of several sizes on some of the nodes, names with and without tag and digest."""
    images = [f"registry.example:5000/{name}" for name in ("a:v1", "b:latest", "c:2", f"d@sha256:{'0' * 64}")]
    wanted = [*images, "registry.example:5000/b", "registry.example:5000/absent"]
    sizes = {image: rng.randint(5, 1800) << 20 for image in images}
    nodes = []
    for i in range(rng.randint(2, 10)):
        held = rng.sample(images, rng.randint(0, len(images)))
        nodes.append(node(f"n{i}", images={image: sizes[image] for image in held}))
    pods = []
    for i in range(3):
        containers = [container(f"c{j}", image=rng.choice(wanted)) for j in range(rng.randint(1, 3))]
        spec: Object = {}
        if rng.random() < 0.4:
            spec["initContainers"] = [container("early", image=rng.choice(wanted))]
        pods.append(pod(f"p{i}", containers=containers, **spec))
    return "image-locality", nodes, pods


def sized_nodes(rng: Random, count: int) -> list[Object]:
    """Nodes of several sizes, some with extended resources."""
    nodes = []
    for i in range(count):
        extended = {}
        if rng.random() < 0.5:
            extended[_GPU] = str(rng.randint(0, 4))
        if rng.random() < 0.2:
            extended[_FPGA] = "1"
        cpu, memory = rng.choice(("1", "2", "3900m", "8")), rng.choice(("1Gi", "3000M", "8Gi", "15999Mi"))
        pods = rng.choice(("110", "110", "110", "2"))
        nodes.append(node(f"n{i}", cpu=cpu, memory=memory, pods=pods, extended=extended))
    return nodes


def _bound(rng: Random, nodes: list[Object]) -> list[Object]:
    return [
        pod(f"b{i}", _plain(rng), on=rng.choice(nodes)["metadata"]["name"])
        for i in range(rng.randint(0, 2 * len(nodes)))
    ]


def _plain(rng: Random) -> dict[str, str]:
    requests = {}
    if rng.random() < 0.8:
        requests["cpu"] = f"{rng.choice((50, 100, 250, 500, 1000, 1900))}m"
    if rng.random() < 0.8:
        requests["memory"] = rng.choice(("64Mi", "200M", "512Mi", "1Gi", "1500Mi"))
    return requests


def _requesting(rng: Random, name: str) -> Object:
    containers = [container(f"c{j}", _plain(rng)) for j in range(rng.randint(1, 3))]
    if rng.random() < 0.15:  # for the Pod as a whole, which must be no less than its containers together
        return pod(name, containers=containers, resources={"requests": {"cpu": "6", "memory": "7Gi"}})
    if rng.random() < 0.35:
        resource = rng.choice((_GPU, _GPU, _FPGA, _IGNORED))
        plain = containers[0].get("resources", {}).get("requests", {})
        containers[0] = container("c0", {**plain, resource: str(rng.randint(1, 3))})
    if rng.random() < 0.15:
        containers.append(container("big", {"cpu": "6", "ephemeral-storage": rng.choice(("20Gi", "200Gi"))}))
    spec: Object = {}
    if rng.random() < 0.4:
        spec["initContainers"] = [
            container(f"i{j}", _plain(rng), always=rng.random() < 0.5) for j in range(rng.randint(1, 3))
        ]
    if rng.random() < 0.2:
        spec["overhead"] = {"cpu": "150m", "memory": "100Mi"}
    return pod(name, containers=containers, **spec)
