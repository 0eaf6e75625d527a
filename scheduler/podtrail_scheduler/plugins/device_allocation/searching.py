"""The search for devices: backtracking over claims, requests, alternatives and devices, the first solution wins."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from podtrail_scheduler.objects.resource import (
    ALL_DEVICES,
    DeviceAttribute,
    DeviceConstraint,
    DeviceId,
    DeviceSpecification,
    DeviceTaintRule,
    ResourceClaim,
)

from .capacity import NOTHING, Amounts, share, suffices, total
from .chosen import Chosen, TakenDevices, UnallocatableError, WantedDevices
from .counters import CountersLeft, counters_left
from .pools import CandidateDevice, PoolId

MAX_DEVICES = 32
"""As many devices one claim may have."""

Selectable = Callable[[int, WantedDevices, CandidateDevice], bool]


class TooManyError(Exception):
    """The claim would have more devices than it may."""


class TimedOutError(Exception):
    """The search took too long."""


class DeviceSearch:
    """On one node; `chosen` has the devices of each claim when `place(0, 0)` was true."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        wanted: Sequence[Sequence[Sequence[WantedDevices]]],
        candidates: Sequence[CandidateDevice],
        selectable: Selectable,
        taken: TakenDevices,
        counters: dict[PoolId, CountersLeft],
        rules: Sequence[DeviceTaintRule],
        late: Callable[[], bool],
    ) -> None:
        """`wanted` by claim, request and alternative; `counters` are filled in as they are asked for."""
        self._claims = claims
        self._wanted = wanted
        self._candidates = candidates
        self._selectable = selectable
        self._taken = taken
        self._counters = counters
        self._rules = rules
        self._late = late
        self._whole: Counter[DeviceId] = Counter()
        self._shared: dict[DeviceId, list[Amounts]] = {}
        self._consumed: Counter[tuple[PoolId, str, str]] = Counter()
        self.chosen: list[list[Chosen]] = [[] for _ in claims]

    def place(self, claim: int, request: int) -> bool:
        """Finds devices from this request on.

        Raises:
            TooManyError: the claim would have more devices than one may.
            TimedOutError: it took too long.
            UnallocatableError: a claim can't be met as it is written.
        """
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if request == len(requests):
            try:
                return self.place(claim + 1, 0)
            except TooManyError:
                return False
        if requests[request].exactly is not None:
            return self._devices((claim, request, 0), 0, 0)
        too_many = True
        for alternative in range(len(requests[request].first_available)):
            try:
                if self._devices((claim, request, alternative), 0, 0):
                    return True
                too_many = False
            except TooManyError:
                continue
        if too_many:
            raise TooManyError
        return False

    def _devices(self, place: tuple[int, int, int], have: int, start: int) -> bool:
        """Finds one more device for the request, from the candidate at `start` on, and goes on from there."""
        if self._late():
            raise TimedOutError
        claim, request, alternative = place
        wanted = self._wanted[claim][request][alternative]
        every = wanted.specification.allocation_mode == ALL_DEVICES
        if every and not wanted.devices:
            return False
        if have >= wanted.number:
            return self.place(claim, request + 1)
        if wanted.number - have > MAX_DEVICES - len(self.chosen[claim]):
            raise TooManyError
        possible: Iterable[tuple[int, CandidateDevice]]
        if every:
            possible = ((0, wanted.devices[have]),)
        else:
            possible = ((at, self._candidates[at]) for at in range(start, len(self._candidates)))
        for at, candidate in possible:
            if not self._take(place, wanted, candidate, must=every):
                continue
            found = False
            try:
                found = self._devices(place, have + 1, at + 1)
            finally:
                if not found:
                    self._give_back(claim)
            if found:
                return True
        return False

    def _take(
        self, place: tuple[int, int, int], wanted: WantedDevices, candidate: CandidateDevice, *, must: bool
    ) -> bool:
        """Chooses the device unless it is in use, not selected, tainted, or breaks a constraint.

        One that `must` be chosen is an UnallocatableError when it breaks a constraint.
        """
        claim, specification, device = place[0], wanted.specification, candidate.device
        if self._in_use(claim, wanted, candidate) or not self._selectable(claim, wanted, candidate):
            return False
        if not suffices(device, specification.capacity, self._consumed_of(candidate.id)):
            return False
        takes_counters = bool(device.consumes_counters) and not self._is_shared_already(candidate)
        if takes_counters and not self._counters_suffice(candidate):
            return False
        if not self._tolerates(specification, candidate):
            return False
        shared = share(device, specification.capacity) if device.allow_multiple_allocations else None
        of_claim = self._claims[claim]
        chosen = Chosen(of_claim.requests[place[1]], specification, candidate, shared, takes_counters)
        if not all(_holds(constraint, self.chosen[claim], chosen) for constraint in of_claim.constraints):
            if must:
                raise UnallocatableError(
                    f"claim {of_claim.key}, request {specification.name}: cannot add device {candidate.id} because a "
                    "claim constraint would not be satisfied"
                )
            return False
        self.chosen[claim].append(chosen)
        self._count(chosen, 1)
        return True

    def _give_back(self, claim: int) -> None:
        self._count(self.chosen[claim].pop(), -1)

    def _count(self, chosen: Chosen, sign: int) -> None:
        candidate = chosen.candidate
        if chosen.consumed is None:
            self._whole[candidate.id] += sign
        elif sign > 0:
            self._shared.setdefault(candidate.id, []).append(chosen.consumed)
        else:
            self._shared[candidate.id].pop()
        if chosen.takes_counters:
            for counter_set, counters in candidate.device.consumes_counters:
                for name, amount in counters.items():
                    self._consumed[candidate.pool.id, counter_set, name] += sign * amount

    def _in_use(self, claim: int, wanted: WantedDevices, candidate: CandidateDevice) -> bool:
        """Whole devices are for one claim; administrators may have them too, but not twice in a claim."""
        if wanted.specification.admin_access:
            return not candidate.device.allow_multiple_allocations and any(
                each.candidate.id == candidate.id for each in self.chosen[claim]
            )
        return candidate.id in self._taken.devices or self._whole[candidate.id] > 0

    def _tolerates(self, specification: DeviceSpecification, candidate: CandidateDevice) -> bool:
        given = (rule.taint for rule in self._rules if rule.selects(candidate.id))
        return all(
            taint.effect not in ("NoSchedule", "NoExecute")
            or any(each.tolerates(taint) for each in specification.tolerations)
            for taint in (*candidate.device.taints, *given)
        )

    def _consumed_of(self, device: DeviceId) -> Amounts:
        consumed = self._taken.consumed.get(device, NOTHING)
        for amounts in self._shared.get(device, ()):
            consumed = total(consumed, amounts)
        return consumed

    def _is_shared_already(self, candidate: CandidateDevice) -> bool:
        return candidate.device.allow_multiple_allocations and (
            candidate.id in self._taken.consumed or bool(self._shared.get(candidate.id))
        )

    def _counters_suffice(self, candidate: CandidateDevice) -> bool:
        pool = candidate.pool
        left = self._counters.get(pool.id)
        if left is None:
            left = self._counters[pool.id] = counters_left(pool, self._taken)
        return all(
            left.get((counter_set, name), 0) - self._consumed[pool.id, counter_set, name] >= amount
            for counter_set, counters in candidate.device.consumes_counters
            for name, amount in counters.items()
        )


def _holds(constraint: DeviceConstraint, before: Sequence[Chosen], chosen: Chosen) -> bool:
    """Whether the device has the constraint's attribute, its value the same as before, or another one."""
    if not _concerns(constraint, chosen):
        return True
    name = constraint.match_attribute or constraint.distinct_attribute
    attribute = _attribute(chosen.candidate, name)
    if attribute is None:
        return False
    others = (_attribute(each.candidate, name) for each in before if _concerns(constraint, each))
    if constraint.match_attribute:
        return all(attribute.comparable and other == attribute for other in others)
    return all(attribute.comparable and other != attribute for other in others)


def _concerns(constraint: DeviceConstraint, chosen: Chosen) -> bool:
    requests = constraint.requests
    return not requests or chosen.request.name in requests or chosen.request_name in requests


def _attribute(candidate: CandidateDevice, name: str) -> DeviceAttribute | None:
    attributes = candidate.device.attributes
    domain, _, identifier = name.rpartition("/")
    if name in attributes or domain != candidate.pool.id.driver:
        return attributes.get(name)
    return attributes.get(identifier)
