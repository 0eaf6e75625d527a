# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""NodeResourcesFit: what a Pod asks for must be free on the node; the emptier the node, the better (LeastAllocated)."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import DEFAULT_CPU, DEFAULT_MEMORY, NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.quantities import CPU, MEMORY, PODS
from podtrail_scheduler.queueing.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_UPDATE,
    Happening,
    Hint,
    Registration,
    always,
)

TOO_MANY_PODS = "Too many pods"


class NodeResourcesFit:
    """Filters and scores by resources; extended ones (such as GPUs) filter only."""

    name = "NodeResourcesFit"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node that lacks something; without hope when even the empty node would."""
        allocatable, requested = node.node.allocatable, node.requested
        short = [
            name
            for name, amount in pod.requests.items()
            if amount and amount > allocatable.get(name, 0) - requested.get(name, 0)
        ]
        full = len(node.pods) >= allocatable.get(PODS, 0)
        if not short and not full:
            return None
        reasons = [TOO_MANY_PODS] * full + [f"Insufficient {name}" for name in short]
        if any(pod.requests[name] > allocatable.get(name, 0) for name in short):
            return unresolvable(*reasons)
        return unschedulable(*reasons)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The mean of the free shares of CPU and memory, in hundredths, with the Pod on the node."""
        allocatable = node.node.allocatable
        cpu = _free(node.cpu + pod.requests.get(CPU, DEFAULT_CPU), allocatable.get(CPU, 0))
        memory = _free(node.memory + pod.requests.get(MEMORY, DEFAULT_MEMORY), allocatable.get(MEMORY, 0))
        return (cpu + memory) // 2

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that go, nodes that come or grow."""
        return (
            Registration(ASSIGNED_POD_DELETE, always),
            Registration(NODE_ADD, _large_enough),
            Registration(NODE_UPDATE, _grown),
        )


def _free(requested: int, allocatable: int) -> int:
    return (allocatable - requested) * MAX_SCORE // allocatable if requested <= allocatable and allocatable else 0


def _large_enough(pod: Pod, happening: Happening) -> Hint:
    node = happening.new
    assert isinstance(node, Node)
    fits = all(amount <= node.allocatable.get(name, 0) for name, amount in pod.requests.items())
    return Hint.QUEUE if fits else Hint.SKIP


def _grown(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(old, Node)
    assert isinstance(new, Node)
    grown = any(new.allocatable.get(name, 0) > old.allocatable.get(name, 0) for name in (*pod.requests, PODS))
    return _large_enough(pod, happening) if grown else Hint.SKIP
