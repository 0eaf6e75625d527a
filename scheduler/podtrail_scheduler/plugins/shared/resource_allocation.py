"""What Pods and nodes come to in the resources that a score is about."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from podtrail_scheduler.configuration.args import ResourceSpec
from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.framework.node_info import NodeInfo, nonzero_requests
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.quantities import CPU, MEMORY, is_counted, is_scalar
from podtrail_scheduler.plugins.device_allocation.totals import DeviceTotals

from .extended_resources import ExtendedResources


class ResourceUse(NamedTuple):
    """One resource of a node: what is asked for with the Pod and without it, of what there is (never 0)."""

    weight: int
    requested: int
    allocated: int
    allocatable: int


class ScoredResources:
    """The resources of a score's args; those that the scheduler does not count never have an `ResourceUse`."""

    def __init__(self, specs: Sequence[ResourceSpec], listers: Listers, *, nonzero: bool) -> None:
        """With `nonzero`, containers that ask for no cpu or memory count with the defaults."""
        self._extended = listers.shared(ExtendedResources)
        self._devices = listers.shared(DeviceTotals)
        self._specs = tuple((each.name, each.weight, is_scalar(each.name)) for each in specs if is_counted(each.name))
        self._nonzero = nonzero

    def wanted(self, pod: Pod) -> tuple[int, ...]:
        """What the Pod asks for, in the order of the args."""
        amounts = pod.requests
        if self._nonzero and pod.container_requests is not None:
            amounts = pod.container_requests
        elif self._nonzero:
            cpu, memory = nonzero_requests(pod)
            amounts = {**amounts, CPU: cpu, MEMORY: memory}
        return tuple(amounts.get(name, 0) for name, _, _ in self._specs)

    def key(self, pod: Pod) -> Hashable:
        """What the answers depend on besides the node."""
        wanted, classes = self.wanted(pod), self._extended.classes()
        if not classes:
            return wanted
        of_devices = any(name in classes and amount for (name, _, _), amount in zip(self._specs, wanted, strict=True))
        return wanted, self._devices.version if of_devices else None

    def of(self, wanted: Sequence[int], node: NodeInfo) -> list[ResourceUse]:
        """The resources that the node has and, if scalar, the Pod asks for."""
        allocations = []
        allocatable_amounts = node.node.allocatable
        for (name, weight, scalar), amount in zip(self._specs, wanted, strict=True):
            if scalar and not amount:
                continue
            allocatable, allocated = allocatable_amounts.get(name, 0), 0
            if allocatable:
                allocated = self._allocated(name, node)
            elif (device_class := self._extended.classes().get(name)) is not None:
                allocatable, allocated = self._devices.of(device_class, node.node)
            if allocatable:
                allocations.append(ResourceUse(weight, allocated + amount, allocated, allocatable))
        return allocations

    def _allocated(self, name: str, node: NodeInfo) -> int:
        if self._nonzero:
            if name == CPU:
                return node.nonzero_cpu
            if name == MEMORY:
                return node.nonzero_memory
        return node.requested.get(name, 0)
