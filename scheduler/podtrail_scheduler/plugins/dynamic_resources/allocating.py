"""The search for devices: backtracking over claims, requests, alternatives and devices, the first solution wins."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from podtrail_scheduler.objects import Node
from podtrail_scheduler.objects.resource import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    ResourceClaim,
)

from .pools import Candidate, Pool, PoolId, node_matches
from .selecting import DeviceSelectors

MAX_DEVICES = 32
"""As many devices one claim may have."""

CountersLeft = dict[PoolId, dict[tuple[str, str], int]]


class UnallocatableError(Exception):
    """A claim asks for something that can't be answered: the node's answer is an error."""


class InvalidPoolsError(Exception):
    """No devices were found, but some pools have contradictions: with them mended there might be."""


class TimedOutError(Exception):
    """The search took too long."""


class _TooManyError(Exception):
    """The claim would have more devices than it may."""


class Chosen(NamedTuple):
    """A device for a request."""

    request: DeviceRequest
    specification: DeviceSpecification
    candidate: Candidate

    @property
    def request_name(self) -> str:
        """`request`, or `request/subrequest` for an alternative."""
        return request_name(self.request, self.specification)


class Wanted(NamedTuple):
    """How many devices a request or alternative wants, and which ones if it wants all."""

    specification: DeviceSpecification
    device_class: DeviceClass
    number: int
    devices: Sequence[Candidate] = ()


class Allocator:
    """Searches for one Pod's claims, on any node. `allocated` are the devices that other claims have."""

    def __init__(
        self,
        allocated: Set[DeviceId],
        classes: Callable[[str], DeviceClass | None],
        selectors: DeviceSelectors,
    ) -> None:
        self.allocated = allocated
        self.classes = classes
        self.selectors = selectors
        self.counters_left: CountersLeft = {}
        """Of shared counters, what allocated devices leave; worked out when first asked for."""

    def allocate(
        self, node: Node, pools: Sequence[Pool], claims: Sequence[ResourceClaim], late: Callable[[], bool]
    ) -> list[list[Chosen]] | None:
        """The devices for each claim, None when there are not enough; `late` says that it has taken too long.

        Raises UnallocatableError, UnselectableError, InvalidPoolsError and TimedOutError.
        """
        search = _Search(self, node, pools, claims, late)
        try:
            if search.place(0, 0):
                return search.chosen
        except _TooManyError:
            return None
        if any(pool.invalid for pool in pools):
            raise InvalidPoolsError("invalid resource pools were encountered")
        return None


def request_name(request: DeviceRequest, specification: DeviceSpecification) -> str:
    """`request`, or `request/subrequest` for an alternative."""
    return request.name if request.exactly is not None else f"{request.name}/{specification.name}"


class _Search:
    def __init__(
        self,
        allocator: Allocator,
        node: Node,
        pools: Sequence[Pool],
        claims: Sequence[ResourceClaim],
        late: Callable[[], bool],
    ) -> None:
        self._allocator = allocator
        self._late = late
        self._node = node
        self._pools = pools
        self._claims = claims
        self._candidates = [
            Candidate(device, each, pool)
            for pool in pools
            if pool.usable
            for each in pool.slices
            for device in each.devices
        ]
        self._selectable: dict[tuple[int, int, int, DeviceId], bool] = {}
        self._taken: Counter[DeviceId] = Counter()
        self._consumed: Counter[tuple[PoolId, str, str]] = Counter()
        self.chosen: list[list[Chosen]] = [[] for _ in claims]
        self._wanted = [
            [
                [self._want((c, r, a), specification) for a, specification in enumerate(alternatives(request))]
                for r, request in enumerate(claim.requests)
            ]
            for c, claim in enumerate(claims)
        ]
        for claim, wanted in zip(claims, self._wanted, strict=True):
            self._check_size(claim, wanted)
            for index, constraint in enumerate(claim.constraints):
                if not constraint.match_attribute:
                    raise UnallocatableError(
                        f"claim {claim.key}, constraint #{index}: empty constraint (unsupported constraint type?)"
                    )

    def place(self, claim: int, request: int) -> bool:
        """Finds devices from this request on."""
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if request == len(requests):
            try:
                return self.place(claim + 1, 0)
            except _TooManyError:
                return False
        if requests[request].exactly is not None:
            return self._devices(claim, request, 0, 0)
        too_many = True
        for alternative in range(len(requests[request].first_available)):
            try:
                if self._devices(claim, request, alternative, 0):
                    return True
                too_many = False
            except _TooManyError:
                continue
        if too_many:
            raise _TooManyError
        return False

    def _devices(self, claim: int, request: int, alternative: int, have: int) -> bool:
        """Finds one more device for the request and goes on from there."""
        if self._late():
            raise TimedOutError
        wanted = self._wanted[claim][request][alternative]
        every = wanted.specification.allocation_mode == ALL_DEVICES
        if every and not wanted.devices:
            return False
        if have >= wanted.number:
            return self.place(claim, request + 1)
        if wanted.number - have > MAX_DEVICES - len(self.chosen[claim]):
            raise _TooManyError
        place = claim, request, alternative
        for candidate in (wanted.devices[have],) if every else self._available(place, wanted):
            if not self._take(place, wanted.specification, candidate, must=every):
                continue
            try:
                found = self._devices(claim, request, alternative, have + 1)
            except _TooManyError:
                self._give_back(claim)
                raise
            if found:
                return True
            self._give_back(claim)
        return False

    def _available(self, place: tuple[int, int, int], wanted: Wanted) -> Iterator[Candidate]:
        for candidate in self._candidates:
            if not self._in_use(place[0], wanted.specification, candidate.id) and self._selects(
                place, wanted.specification, wanted.device_class, candidate
            ):
                yield candidate

    def _in_use(self, claim: int, specification: DeviceSpecification, device: DeviceId) -> bool:
        if specification.admin_access:
            return any(each.candidate.id == device for each in self.chosen[claim])
        return device in self._allocator.allocated or self._taken[device] > 0

    def _selects(
        self,
        place: tuple[int, int, int],
        specification: DeviceSpecification,
        device_class: DeviceClass,
        candidate: Candidate,
    ) -> bool:
        key = (*place, candidate.id)
        answer = self._selectable.get(key)
        if answer is None:
            selectors, device = self._allocator.selectors, candidate.device
            answer = self._selectable[key] = (
                not device.binding_conditions
                and selectors.match(f"class {device_class.name}", device_class.selectors, candidate)
                and selectors.match(f"claim {self._claims[place[0]].key}", specification.selectors, candidate)
                and (
                    not candidate.slice.per_device_node_selection
                    or node_matches(self._node, device.node_name, device.all_nodes, device.node_selector)
                )
            )
        return answer

    def _take(
        self, place: tuple[int, int, int], specification: DeviceSpecification, candidate: Candidate, *, must: bool
    ) -> bool:
        """Chooses the device unless it is in use, tainted, or breaks a constraint; one that `must` be may not."""
        claim = self._claims[place[0]]
        if self._in_use(place[0], specification, candidate.id) or not self._counters_suffice(candidate):
            return False
        for taint in candidate.device.taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not any(
                each.tolerates(taint) for each in specification.tolerations
            ):
                return False
        chosen = Chosen(claim.requests[place[1]], specification, candidate)
        if not all(_holds(constraint, self.chosen[place[0]], chosen) for constraint in claim.constraints):
            if must:
                raise UnallocatableError(
                    f"claim {claim.key}, request {specification.name}: cannot add device {candidate.id} because a "
                    "claim constraint would not be satisfied"
                )
            return False
        self.chosen[place[0]].append(chosen)
        self._taken[candidate.id] += 1
        self._consume(candidate, 1)
        return True

    def _give_back(self, claim: int) -> None:
        candidate = self.chosen[claim].pop().candidate
        self._taken[candidate.id] -= 1
        self._consume(candidate, -1)

    def _consume(self, candidate: Candidate, sign: int) -> None:
        for counter_set, counters in candidate.device.consumes_counters:
            for name, amount in counters.items():
                self._consumed[candidate.pool.id, counter_set, name] += sign * amount

    def _counters_suffice(self, candidate: Candidate) -> bool:
        if not candidate.device.consumes_counters:
            return True
        pool = candidate.pool
        left = self._allocator.counters_left.get(pool.id)
        if left is None:
            left = self._allocator.counters_left[pool.id] = _counters_left(pool, self._allocator.allocated)
        return all(
            left.get((counter_set, name), 0) - self._consumed[pool.id, counter_set, name] >= amount
            for counter_set, counters in candidate.device.consumes_counters
            for name, amount in counters.items()
        )

    def _want(self, place: tuple[int, int, int], specification: DeviceSpecification) -> Wanted:
        claim = self._claims[place[0]]
        what = f"claim {claim.key}, request {specification.name}"
        device_class = self._allocator.classes(specification.device_class_name)
        if device_class is None:
            raise UnallocatableError(f"{what}: could not retrieve device class {specification.device_class_name}")
        if specification.wants_capacity:
            raise UnallocatableError(f"{what}: has capacity requests, which are not supported")
        if specification.allocation_mode == EXACT_COUNT:
            return Wanted(specification, device_class, specification.count)
        if specification.allocation_mode != ALL_DEVICES:
            raise UnallocatableError(f"{what}: unsupported count mode {specification.allocation_mode}")
        for pool in self._pools:
            if not pool.usable:
                state = "being updated" if pool.incomplete else "invalid"
                raise UnallocatableError(
                    f"{what}: asks for all devices, but resource pool {pool.id} is currently {state}"
                )
        devices = [each for each in self._candidates if self._selects(place, specification, device_class, each)]
        return Wanted(specification, device_class, len(devices), devices)

    def _check_size(self, claim: ResourceClaim, wanted: Sequence[Sequence[Wanted]]) -> None:
        total = 0
        for request, each in zip(claim.requests, wanted, strict=True):
            fewest = min((alternative.number for alternative in each), default=0)
            if fewest > MAX_DEVICES - total:
                raise UnallocatableError(
                    f"claim {claim.key}, request {request.name}: adding {fewest} devices exceeds the claim limit of "
                    f"{MAX_DEVICES}, with {total} already accounted for"
                )
            total += fewest


def alternatives(request: DeviceRequest) -> Sequence[DeviceSpecification]:
    """What would do, from the most wanted."""
    return request.first_available if request.exactly is None else (request.exactly,)


def _counters_left(pool: Pool, allocated: Set[DeviceId]) -> dict[tuple[str, str], int]:
    left = {
        (counter_set, name): amount
        for counter_set, counters in (pool.counters or {}).items()
        for name, amount in counters.items()
    }
    for each in (*pool.slices, *pool.elsewhere):
        for device in each.devices:
            if DeviceId(pool.id.driver, pool.id.name, device.name) in allocated:
                for counter_set, counters in device.consumes_counters:
                    for name, amount in counters.items():
                        left[counter_set, name] -= amount
    return left


def _holds(constraint: DeviceConstraint, before: Sequence[Chosen], chosen: Chosen) -> bool:
    """Whether the device has the attribute, with the same value as those before it that the constraint is about."""
    if not _concerns(constraint, chosen):
        return True
    attribute = _attribute(chosen.candidate, constraint.match_attribute)
    first = next((each for each in before if _concerns(constraint, each)), None)
    return attribute is not None and (
        first is None or attribute == _attribute(first.candidate, constraint.match_attribute)
    )


def _concerns(constraint: DeviceConstraint, chosen: Chosen) -> bool:
    requests = constraint.requests
    return not requests or chosen.request.name in requests or chosen.request_name in requests


def _attribute(candidate: Candidate, name: str) -> DeviceAttribute | None:
    attributes: Mapping[str, DeviceAttribute] = candidate.device.attributes
    domain, _, identifier = name.rpartition("/")
    if name in attributes or domain != candidate.pool.id.driver:
        return attributes.get(name)
    return attributes.get(identifier)
