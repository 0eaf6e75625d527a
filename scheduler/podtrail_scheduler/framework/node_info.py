"""A node with the Pods on it and what they take."""

from itertools import count

from podtrail_scheduler.objects import HostPort, Node, Pod, PodAffinity
from podtrail_scheduler.quantities import CPU, MEMORY

# What a container that asks for nothing is counted as when nodes are scored.
DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 * 1024**2

_generations = count(1)
_NO_TERMS = PodAffinity()


class NodeInfo:
    """Sums are kept up to date with the Pods, so that a filter reads and adds nothing up."""

    __slots__ = (
        "cpu",
        "generation",
        "memory",
        "name",
        "node",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "ports",
        "requested",
        "with_anti_affinity",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name = node.name
        self.pods: dict[str, Pod] = {}
        self.with_anti_affinity: dict[str, Pod] = {}
        self.pods_with_affinity: dict[str, Pod] = {}
        """Those with any term of Pod affinity or anti-affinity."""
        self.pods_with_required_anti_affinity = self.with_anti_affinity
        self.generation = next(_generations)
        """Another number after each change, and on each node."""
        self.requested: dict[str, int] = {}
        self.ports: dict[HostPort, int] = {}
        self.cpu = 0
        self.memory = 0
        """Like `requested`, with the defaults for Pods that ask for nothing (`cpu` in thousandths)."""

    def add(self, pod: Pod) -> None:
        """Counts `pod` in."""
        self.pods[pod.uid] = pod
        if pod.affinity.pod_anti_affinity.required:
            self.with_anti_affinity[pod.uid] = pod
        if pod.affinity.pod_affinity != _NO_TERMS or pod.affinity.pod_anti_affinity != _NO_TERMS:
            self.pods_with_affinity[pod.uid] = pod
        self.generation = next(_generations)
        self._count(pod, 1)

    def remove(self, pod: Pod) -> None:
        """Counts the Pod with the uid of `pod` out."""
        self._count(self.pods.pop(pod.uid), -1)
        self.with_anti_affinity.pop(pod.uid, None)
        self.pods_with_affinity.pop(pod.uid, None)
        self.generation = next(_generations)

    def clone(self) -> "NodeInfo":
        """A copy to try things on."""
        copy = NodeInfo(self.node)
        copy.pods = dict(self.pods)
        copy.with_anti_affinity = copy.pods_with_required_anti_affinity = dict(self.with_anti_affinity)
        copy.pods_with_affinity = dict(self.pods_with_affinity)
        copy.requested = dict(self.requested)
        copy.ports = dict(self.ports)
        copy.cpu, copy.memory = self.cpu, self.memory
        return copy

    def _count(self, pod: Pod, sign: int) -> None:
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for port in pod.host_ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]
        self.cpu += sign * pod.requests.get(CPU, DEFAULT_CPU)
        self.memory += sign * pod.requests.get(MEMORY, DEFAULT_MEMORY)
