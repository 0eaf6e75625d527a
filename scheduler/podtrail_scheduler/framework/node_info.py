"""A node with the Pods on it and what they take."""

from collections.abc import Mapping
from itertools import count
from types import MappingProxyType
from typing import Never

from podtrail_scheduler.objects import HostPort, Node, Pod
from podtrail_scheduler.objects.quantities import CPU, MEMORY

from .image_states import ImageStates

# What a container that asks for nothing is counted as when nodes are scored.
DEFAULT_CPU = 100
"""Thousandths of a core (kube-scheduler's `DefaultMilliCPURequest`)."""
DEFAULT_MEMORY = 200 * 1024**2
"""Bytes (kube-scheduler's `DefaultMemoryRequest`)."""

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - it is compared, nothing listens

_generations = count(1)


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """What the Pod counts as in scores: cpu in thousandths, memory in bytes."""
    if pod.nonzero_requests is not None:
        return pod.nonzero_requests
    return pod.requests.get(CPU, DEFAULT_CPU), pod.requests.get(MEMORY, DEFAULT_MEMORY)


class NodeInfo:
    """A node and its Pods (kube-scheduler's `NodeInfo`); sums are kept up to date, so that a filter adds nothing up."""

    __slots__ = (
        "_view",
        "claims",
        "generation",
        "images",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "ports",
        "requested",
    )

    def __init__(self, node: Node, images: ImageStates | None = None) -> None:
        """`images` is shared by the nodes of a cluster."""
        self.node = node
        self.name = node.name
        self.images = ImageStates() if images is None else images
        self.images.add(node)
        self.generation = next(_generations)
        """Another number after each change, and on each node."""
        self.pods: dict[str, Pod] = {}
        """By uid."""
        self.pods_with_affinity: dict[str, Pod] = {}
        """Those with any term of Pod affinity or anti-affinity."""
        self.pods_with_required_anti_affinity: dict[str, Pod] = {}
        self.requested: dict[str, int] = {}
        self.nonzero_cpu = 0
        """Like `requested`, with the defaults for containers that ask for nothing; thousandths."""
        self.nonzero_memory = 0
        self.ports: dict[tuple[str, int], dict[str, int]] = {}
        """How many Pods have a protocol and port, by host address."""
        self.claims: dict[str, int] = {}
        """How many volumes use a PersistentVolumeClaim, by its key."""
        self._view: NodeInfo | None = None

    @property
    def view(self) -> "NodeInfo":
        """The same node for plugins of others, who can't change it."""
        if self._view is None:
            self._view = _NodeView(self)
        return self._view

    def set_node(self, node: Node) -> None:
        """The node has changed; the Pods stay."""
        self.images.remove(self.node)
        self.images.add(node)
        self.node = node
        self.generation = next(_generations)

    def leave(self) -> None:
        """The node is gone: its images count no more."""
        self.images.remove(self.node)

    def add(self, pod: Pod) -> None:
        """Counts `pod` in."""
        uid, near, away = pod.uid, pod.affinity.pod_affinity, pod.affinity.pod_anti_affinity
        self.pods[uid] = pod
        if near.required or near.preferred or away.required or away.preferred:
            self.pods_with_affinity[uid] = pod
            if away.required:
                self.pods_with_required_anti_affinity[uid] = pod
        self._count(pod, 1)

    def remove(self, pod: Pod) -> None:
        """Counts the Pod with the uid of `pod` out."""
        uid = pod.uid
        self._count(self.pods.pop(uid), -1)
        self.pods_with_affinity.pop(uid, None)
        self.pods_with_required_anti_affinity.pop(uid, None)

    def has_port_free(self, port: HostPort) -> bool:
        """Whether no Pod has the port at that address, or at any address."""
        addresses = self.ports.get((port.protocol, port.port))
        if not addresses:
            return True
        wanted = port.host_ip or ANY_ADDRESS
        return wanted != ANY_ADDRESS and wanted not in addresses and ANY_ADDRESS not in addresses

    def clone(self) -> "NodeInfo":
        """A copy to try things on."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.node, copy.name, copy.images, copy.generation = self.node, self.name, self.images, self.generation
        copy.pods = self.pods.copy()
        copy.pods_with_affinity = self.pods_with_affinity.copy()
        copy.pods_with_required_anti_affinity = self.pods_with_required_anti_affinity.copy()
        copy.requested = self.requested.copy()
        copy.nonzero_cpu, copy.nonzero_memory = self.nonzero_cpu, self.nonzero_memory
        copy.ports = {port: addresses.copy() for port, addresses in self.ports.items()}
        copy.claims = self.claims.copy()
        copy._view = None
        return copy

    def _count(self, pod: Pod, sign: int) -> None:
        self.generation = next(_generations)
        _change(self.requested, pod.requests, sign)
        cpu, memory = nonzero_requests(pod)
        self.nonzero_cpu += sign * cpu
        self.nonzero_memory += sign * memory
        for port in pod.host_ports:
            place = port.protocol, port.port
            addresses = self.ports.setdefault(place, {})
            _change(addresses, {port.host_ip or ANY_ADDRESS: 1}, sign)
            if not addresses:
                del self.ports[place]
        for volume in pod.volumes:
            if volume.claim_name:
                _change(self.claims, {f"{pod.namespace}/{volume.claim_name}": 1}, sign)


class _NodeView(NodeInfo):
    """A node that can't be changed: what a plugin did to it would count in the attempts of all Pods."""

    __slots__ = ("_info",)
    _info: NodeInfo

    def __init__(self, info: NodeInfo) -> None:
        object.__setattr__(self, "_info", info)

    node = property(lambda self: self._info.node)
    name = property(lambda self: self._info.name)
    generation = property(lambda self: self._info.generation)
    nonzero_cpu = property(lambda self: self._info.nonzero_cpu)
    nonzero_memory = property(lambda self: self._info.nonzero_memory)
    images = property(lambda self: self._info.images.clone())
    pods = property(lambda self: MappingProxyType(self._info.pods))
    pods_with_affinity = property(lambda self: MappingProxyType(self._info.pods_with_affinity))
    pods_with_required_anti_affinity = property(
        lambda self: MappingProxyType(self._info.pods_with_required_anti_affinity)
    )
    requested = property(lambda self: MappingProxyType(self._info.requested))
    claims = property(lambda self: MappingProxyType(self._info.claims))
    ports = property(lambda self: {place: MappingProxyType(each) for place, each in self._info.ports.items()})
    view = property(lambda self: self)

    def has_port_free(self, port: HostPort) -> bool:
        return self._info.has_port_free(port)

    def clone(self) -> NodeInfo:
        copy = self._info.clone()
        copy.images = copy.images.clone()
        return copy

    def _refuse(self, *_: object) -> Never:
        raise TypeError(f"node {self.name} can't be changed by a plugin: change what clone() returns")

    __setattr__ = __delattr__ = set_node = leave = add = remove = _refuse  # type: ignore[assignment]


def _change(sums: dict[str, int], amounts: Mapping[str, int], sign: int) -> None:
    """Adds or takes away; what comes to nothing is left out."""
    for name, amount in amounts.items():
        total = sums.get(name, 0) + sign * amount
        if total:
            sums[name] = total
        else:
            sums.pop(name, None)
