# ruff: noqa: ARG001, ARG002 - a plugin is given what its extension point has, used or not
"""NodeResourcesFit: what a Pod asks for must be free on the node; scores by how full that makes it."""

from collections.abc import Collection, Hashable, Sequence

from podtrail_scheduler.configuration.args import NodeResourcesFitArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.quantities import CPU, DEVICE_CLASSES, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from podtrail_scheduler.objects.resource import DeviceClass

from .shared.extended_resources import ExtendedResources
from .shared.resource_allocation import ScoredResources
from .shared.scoring_strategies import scorer

TOO_MANY_PODS = "Too many pods"
_BASIC = (CPU, MEMORY, EPHEMERAL_STORAGE)


class NodeResourcesFit:
    """Filters and scores by resources."""

    name = "NodeResourcesFit"
    in_tree = True

    def __init__(self, handle: Handle, args: NodeResourcesFitArgs | None = None) -> None:
        args = args or NodeResourcesFitArgs()
        self._extended = handle.listers.shared(ExtendedResources)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = ScoredResources(args.scoring_strategy.resources, handle.listers, nonzero=True)
        self._score = scorer(args.scoring_strategy)

    def filter_key(self, pod: Pod) -> Hashable:
        """What the Pod asks for, and what of it devices stand for."""
        return tuple(pod.requests.items()), tuple(self._extended.wanted(pod))

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node that lacks something, without hope when even the empty node would."""
        allocatable = node.node.allocatable
        full = len(node.pods) + 1 > allocatable.get(PODS, 0)
        short = self._short(pod, node)
        if not short:
            return unschedulable(TOO_MANY_PODS) if full else None
        reasons = [TOO_MANY_PODS] if full else []
        reasons += [f"Insufficient {name}" for name in short]
        if any(pod.requests[name] > allocatable.get(name, 0) for name in short):
            return unresolvable(*reasons)
        return unschedulable(*reasons)

    def score_key(self, pod: Pod) -> Hashable:
        """What the Pod asks for of the resources that are scored."""
        return self._resources.key(pod)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 to 100, as the strategy counts the node with the Pod on it."""
        return self._score(self._resources.of(self._resources.wanted(pod), node))

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that go or shrink, nodes that come or grow, and the Pod's own shrinking."""
        node_changes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return (
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), _leaves_room),
            Registration(ClusterEvent(EventResource.NODE, node_changes), self._large_enough_now),
            Registration(
                ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE), _stands_for_something
            ),
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN), _shrinks),
            Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_DOWN)),
        )

    def _short(self, pod: Pod, node: NodeInfo) -> list[str]:
        """The resources that there is too little of: cpu, memory and ephemeral storage first.

        Those that the node would give by its devices are for DynamicResources.
        """
        requests, allocatable, requested = pod.requests, node.node.allocatable, node.requested
        short = [
            name
            for name in requests
            if requests[name] > allocatable.get(name, 0) - requested.get(name, 0) and requests[name]
        ]
        for name in self._extended.delegated(short, node.node) if short else ():
            short.remove(name)
        if len(short) > 1:
            short.sort(key=lambda name: _BASIC.index(name) if name in _BASIC else len(_BASIC))
        if short and (self._ignored or self._ignored_groups):
            return [name for name in short if not self._ignores(name)]
        return short

    def _ignores(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.split("/", 1)[0] in self._ignored_groups)

    def _large_enough_now(self, pod: Pod, happening: Happening) -> Hint:
        old, new = happening.old, happening.new
        assert isinstance(new, Node)
        delegated = self._extended.delegated(self._extended.wanted(pod), new)
        if not _fits_when_empty(pod, new, delegated):
            return Hint.SKIP
        return Hint.SKIP if isinstance(old, Node) and not delegated and not _grown(pod, old, new) else Hint.QUEUE


def _fits_when_empty(pod: Pod, node: Node, delegated: Collection[str]) -> bool:
    room = node.allocatable
    return room.get(PODS, 0) >= 1 and all(
        amount <= room.get(name, 0) or name in delegated for name, amount in pod.requests.items()
    )


def _grown(pod: Pod, old: Node, new: Node) -> bool:
    names = (PODS, *(name for name, amount in pod.requests.items() if amount))
    return any(new.allocatable.get(name, 0) > old.allocatable.get(name, 0) for name in names)


def _leaves_room(pod: Pod, happening: Happening) -> Hint:
    gone = happening.old
    assert isinstance(gone, Pod)
    return Hint.QUEUE if gone.node_name or gone.nominated_node_name else Hint.SKIP


def _stands_for_something(pod: Pod, happening: Happening) -> Hint:
    """The class stands for something that the Pod asks for, and did not before."""
    old, new = happening.old, happening.new
    assert isinstance(new, DeviceClass)
    own = new.extended_resource_name
    if isinstance(old, DeviceClass):
        return Hint.QUEUE if own != old.extended_resource_name and own in pod.requests else Hint.SKIP
    return Hint.QUEUE if own in pod.requests or f"{DEVICE_CLASSES}{new.name}" in pod.requests else Hint.SKIP


def _shrinks(pod: Pod, happening: Happening) -> Hint:
    old, new = happening.old, happening.new
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    names = [name for name, amount in pod.requests.items() if amount]
    less = any(old.requests.get(name, 0) > new.requests.get(name, 0) for name in names)
    return Hint.QUEUE if new.node_name and less else Hint.SKIP
