"""How many devices of a class a node has, and how many of them are allocated: for scores by extended resources."""

from collections.abc import Hashable

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import Node
from podtrail_scheduler.objects.resource import Device, DeviceClass, ResourceSlice

from .chosen import TakenDevices
from .claims import ClaimTracker
from .pools import CandidateDevice, Pool, PoolId, node_matches
from .selecting import DeviceSelectors, UnselectableError


class DeviceTotals:
    """Counts in all slices that are there, of whatever generation; what cannot be selected from counts as nothing."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._claims = listers.shared(ClaimTracker)
        self._selectors = DeviceSelectors()
        self._version: Hashable = None
        self._taken = TakenDevices(frozenset(), {})
        self._slices = -1
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._of_several: list[ResourceSlice] = []

    @property
    def version(self) -> Hashable:
        """Another one after each change of what is counted."""
        return self._listers.version(ResourceSlice), self._listers.version(DeviceClass), self._claims.version

    def of(self, device_class: DeviceClass, node: Node) -> tuple[int, int]:
        """Those that there are, and those that are allocated."""
        self._refresh()
        owner = f"class {device_class.name}"
        try:
            matching = [
                each.id for each in self._on(node) if self._selectors.match(owner, device_class.selectors, each)
            ]
        except UnselectableError:
            return 0, 0
        return len(matching), sum(each in self._taken for each in matching)

    def _on(self, node: Node) -> list[CandidateDevice]:
        return [
            CandidateDevice(device, each, Pool(PoolId(each.driver, each.pool)))
            for each in (*self._of_node.get(node.name, ()), *self._of_several)
            for device in each.devices
            if _usable_on(node, each, device)
        ]

    def _refresh(self) -> None:
        if self._version == self.version:
            return
        self._version, self._taken = self.version, self._claims.taken()
        slices = self._listers.version(ResourceSlice)
        if slices == self._slices:
            return
        self._slices = slices
        self._selectors.refresh(slices)
        self._of_node, self._of_several = {}, []
        for each in self._listers.all(ResourceSlice):
            (self._of_node.setdefault(each.node_name, []) if each.node_name else self._of_several).append(each)


def _usable_on(node: Node, each: ResourceSlice, device: Device) -> bool:
    place = device if each.per_device_node_selection else each
    return node_matches(node, place.node_name, place.all_nodes, place.node_selector)
