"""The devices that a node can use, by pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import Node, NodeSelector
from podtrail_scheduler.objects.resource import Device, DeviceId, ResourceSlice


class PoolId(NamedTuple):
    """A driver and one of its pools."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as a node sees it."""

    id: PoolId
    slices: Sequence[ResourceSlice] = ()
    """Those with devices that the node may use."""
    elsewhere: Sequence[ResourceSlice] = ()
    """Those for other nodes: what is allocated of them takes from the shared counters too."""
    counters: Mapping[str, Mapping[str, int]] | None = None
    incomplete: bool = False
    """The driver is about to publish more of it."""
    invalid: bool = False

    @property
    def usable(self) -> bool:
        """Whether devices of it may be allocated."""
        return not self.incomplete and not self.invalid


class CandidateDevice(NamedTuple):
    """A device and where it was found."""

    device: Device
    slice: ResourceSlice
    pool: Pool

    @property
    def id(self) -> DeviceId:
        """Driver, pool and device, which no two devices share."""
        return DeviceId(self.pool.id.driver, self.pool.id.name, self.device.name)


def node_matches(node: Node, name: str, all_nodes: bool, selector: NodeSelector | None) -> bool:
    """Whether what is for the node of that name, for all nodes or for the selected ones is for `node`."""
    if name:
        return node.name == name
    return all_nodes or (selector is not None and selector.matches(node.labels, node.name))


class Pools:
    """Finds the pools of nodes in the slices that drivers have published; the index is renewed when these change."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self.version = -1
        """Of the slices that are known."""
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._of_several: list[ResourceSlice] = []
        self._of_pool: dict[PoolId, list[ResourceSlice]] = {}

    def refresh(self) -> None:
        """Takes up changes of the slices."""
        version = self._listers.version(ResourceSlice)
        if version == self.version:
            return
        self.version = version
        self._of_node, self._of_several, self._of_pool = {}, [], {}
        for each in self._listers.all(ResourceSlice):
            self._of_pool.setdefault(_pool_of(each), []).append(each)
            if each.has_compatibility_groups:
                continue
            if each.node_name and not each.shared_counters:
                self._of_node.setdefault(each.node_name, []).append(each)
            else:
                self._of_several.append(each)

    def of(self, node: Node) -> list[Pool]:
        """The pools with something for the node, by name; those whose devices must be waited for come last."""
        found: dict[PoolId, list[ResourceSlice]] = {}
        shared = (each for each in self._of_several if _is_for(each, node))
        for each in (*self._of_node.get(node.name, ()), *shared):
            pool = found.setdefault(_pool_of(each), [])
            if pool and each.pool_generation > pool[0].pool_generation:
                pool.clear()
            if not pool or each.pool_generation == pool[0].pool_generation:
                pool.append(each)
        pools = (self._pool(pool_id, sorted(found[pool_id], key=lambda each: each.name)) for pool_id in sorted(found))
        return sorted((pool for pool in pools if pool is not None), key=_has_conditions)

    def _pool(self, pool_id: PoolId, slices: Sequence[ResourceSlice]) -> Pool | None:
        """None for a pool of which a newer generation is there, but not for this node."""
        first = slices[0]
        if len(slices) == first.pool_slices:
            return _built(pool_id, slices, ())
        everywhere = self._of_pool[pool_id]
        if any(each.pool_generation > first.pool_generation for each in everywhere):
            return None
        known = (each for each in everywhere if not each.has_compatibility_groups)
        current = [each for each in known if each.pool_generation == first.pool_generation]
        if len(current) != first.pool_slices:
            return Pool(pool_id, incomplete=True)
        here = {each.name for each in slices}
        return _built(pool_id, slices, [each for each in current if each.name not in here])


def _has_conditions(pool: Pool) -> bool:
    return any(device.binding_conditions for each in pool.slices for device in each.devices)


def _pool_of(each: ResourceSlice) -> PoolId:
    return PoolId(each.driver, each.pool)


def _is_for(each: ResourceSlice, node: Node) -> bool:
    if each.shared_counters:
        return True
    if each.per_device_node_selection:
        return any(
            node_matches(node, device.node_name, device.all_nodes, device.node_selector) for device in each.devices
        )
    return node_matches(node, each.node_name, each.all_nodes, each.node_selector)


def _built(pool_id: PoolId, slices: Sequence[ResourceSlice], elsewhere: Sequence[ResourceSlice]) -> Pool:
    """The pool, invalid when names of devices or counter sets come twice or a counter is taken that is not there."""
    counters: dict[str, Mapping[str, int]] = {}
    for each in slices:
        if not counters.keys().isdisjoint(each.shared_counters):
            return Pool(pool_id, invalid=True)
        counters.update(each.shared_counters)
    names = [device.name for each in slices for device in each.devices]
    known = all(
        consumption.counters.keys() <= counters.get(consumption.counter_set, {}).keys()
        and consumption.counter_set in counters
        for each in (*slices, *elsewhere)
        for device in each.devices
        for consumption in device.consumes_counters
    )
    if len(names) != len(set(names)) or not known:
        return Pool(pool_id, invalid=True)
    return Pool(pool_id, [each for each in slices if not each.shared_counters], elsewhere, counters)
