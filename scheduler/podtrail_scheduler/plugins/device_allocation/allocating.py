"""What each request of a Pod's claims wants, and the search for it on a node."""

from collections.abc import Callable, Sequence

from podtrail_scheduler.objects import Node
from podtrail_scheduler.objects.resource import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceClass,
    DeviceSpecification,
    DeviceTaintRule,
    ResourceClaim,
)

from .capacity import NOTHING, suffices
from .chosen import Chosen, TakenDevices, UnallocatableError, WantedDevices, alternatives
from .counters import CountersLeft
from .pools import CandidateDevice, Pool, PoolId, node_matches
from .searching import MAX_DEVICES, DeviceSearch, TooManyError
from .selecting import DeviceSelectors


class InvalidPoolsError(Exception):
    """No devices were found, but some pools have contradictions: with them mended there might be."""


class Allocator:
    """Searches for one Pod's claims, on any node."""

    def __init__(
        self,
        taken: TakenDevices,
        classes: Callable[[str], DeviceClass | None],
        selectors: DeviceSelectors,
        rules: Sequence[DeviceTaintRule] = (),
        *,
        conditions: bool = True,
    ) -> None:
        """`taken`: what other claims have; `conditions`: devices with binding conditions may be chosen."""
        self._rules = rules
        self._taken = taken
        self._classes = classes
        self._selectors = selectors
        self._conditions = conditions
        self._counters: dict[PoolId, CountersLeft] = {}

    def allocate(
        self, node: Node, pools: Sequence[Pool], claims: Sequence[ResourceClaim], late: Callable[[], bool]
    ) -> list[list[Chosen]] | None:
        """The devices for each claim, None when there are not enough; `late` says that it has taken too long.

        Raises:
            UnallocatableError: a claim can't be met as it is written.
            UnselectableError: a selector fails on a device.
            InvalidPoolsError: devices are missing, and some pools are invalid.
            TimedOutError: it took too long.
        """
        candidates = [
            CandidateDevice(device, each, pool)
            for pool in pools
            if pool.usable
            for each in pool.slices
            for device in each.devices
            if self._conditions or not device.binding_conditions
        ]
        selectable = _Selectable(node, claims, self._selectors)
        wanted = [self._of_claim(index, claim, pools, candidates, selectable) for index, claim in enumerate(claims)]
        search = DeviceSearch(
            claims, wanted, candidates, selectable.ask, self._taken, self._counters, self._rules, late
        )
        try:
            if search.place(0, 0):
                return search.chosen
        except TooManyError:
            return None
        if any(pool.invalid for pool in pools):
            raise InvalidPoolsError("invalid resource pools were encountered")
        return None

    def _of_claim(
        self,
        index: int,
        claim: ResourceClaim,
        pools: Sequence[Pool],
        candidates: Sequence[CandidateDevice],
        selectable: "_Selectable",
    ) -> list[list[WantedDevices]]:
        wanted, fewest = [], 0
        for request in claim.requests:
            each = [
                self._wanted(index, claim, specification, pools, candidates, selectable)
                for specification in alternatives(request)
            ]
            number = min((alternative.number for alternative in each), default=0)
            if number > MAX_DEVICES - fewest:
                raise UnallocatableError(
                    f"claim {claim.key}, request {request.name}: adding {number} devices exceeds the claim limit of "
                    f"{MAX_DEVICES}, with {fewest} already accounted for"
                )
            fewest += number
            wanted.append(each)
        for number, constraint in enumerate(claim.constraints):
            if not constraint.match_attribute and not constraint.distinct_attribute:
                raise UnallocatableError(
                    f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
                )
        return wanted

    def _wanted(
        self,
        index: int,
        claim: ResourceClaim,
        specification: DeviceSpecification,
        pools: Sequence[Pool],
        candidates: Sequence[CandidateDevice],
        selectable: "_Selectable",
    ) -> WantedDevices:
        what = f"claim {claim.key}, request {specification.name}"
        device_class = self._classes(specification.device_class_name)
        if device_class is None:
            raise UnallocatableError(f"{what}: could not retrieve device class {specification.device_class_name}")
        if specification.allocation_mode == EXACT_COUNT:
            return WantedDevices(specification, device_class, specification.count)
        if specification.allocation_mode != ALL_DEVICES:
            raise UnallocatableError(f"{what}: unsupported count mode {specification.allocation_mode}")
        for pool in pools:
            if not pool.usable:
                state = "being updated" if pool.incomplete else "invalid"
                raise UnallocatableError(
                    f"{what}: asks for all devices, but resource pool {pool.id} is currently {state}"
                )
        every = WantedDevices(specification, device_class, 0)
        devices = [
            each
            for each in candidates
            if selectable.ask(index, every, each) and suffices(each.device, specification.capacity, NOTHING)
        ]
        return every._replace(number=len(devices), devices=devices)


class _Selectable:
    """Whether class, request and the device's own place let a device be chosen; asked once for each on a node."""

    def __init__(self, node: Node, claims: Sequence[ResourceClaim], selectors: DeviceSelectors) -> None:
        self._node = node
        self._claims = claims
        self._selectors = selectors
        self._answers: dict[tuple[int, int, int], bool] = {}

    def ask(self, claim: int, wanted: WantedDevices, candidate: CandidateDevice) -> bool:
        """Raises UnselectableError."""
        key = claim, id(wanted.specification), id(candidate.device)
        answer = self._answers.get(key)
        if answer is None:
            device_class, device = wanted.device_class, candidate.device
            owner = f"claim {self._claims[claim].key}"
            answer = self._answers[key] = (
                self._selectors.match(f"class {device_class.name}", device_class.selectors, candidate)
                and self._selectors.match(owner, wanted.specification.selectors, candidate)
                and (
                    not candidate.slice.per_device_node_selection
                    or node_matches(self._node, device.node_name, device.all_nodes, device.node_selector)
                )
            )
        return answer
