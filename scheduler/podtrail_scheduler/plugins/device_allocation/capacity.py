"""Shares of a device's capacity: what a request gets of it, and whether that is left (KEP-5075)."""

from collections.abc import Mapping

from podtrail_scheduler.objects.resource import Device, DeviceCapacity, RequestPolicy

Amounts = Mapping[str, int]
NOTHING: Amounts = {}


def share(device: Device, requested: Amounts) -> Amounts:
    """What a request gets of each capacity."""
    return {name: _share(requested.get(name), capacity) for name, capacity in device.capacity.items()}


def suffices(device: Device, requested: Amounts, consumed: Amounts) -> bool:
    """Whether the device has the capacities asked for, in allowed shares, when others have `consumed` so much."""
    if not requested.keys() <= device.capacity.keys():
        return False
    for name, amount in share(device, requested).items():
        capacity = device.capacity[name]
        if not _allowed(amount, capacity.policy) or consumed.get(name, 0) + amount > capacity.value:
            return False
    return True


def total(one: Amounts, other: Amounts) -> Amounts:
    """The sums."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(key for key in other if key not in one))}


def _share(requested: int | None, capacity: DeviceCapacity) -> int:
    policy = capacity.policy
    if requested is None:
        return capacity.value if policy.default is None else policy.default
    if policy.minimum is not None:
        if requested < policy.minimum or policy.step is None:
            return max(requested, policy.minimum)
        return policy.minimum - (policy.minimum - requested) // policy.step * policy.step
    return next((value for value in policy.valid_values if value >= requested), requested)


def _allowed(amount: int, policy: RequestPolicy) -> bool:
    if amount == policy.default:
        return True
    if policy.minimum is not None or policy.maximum is not None:
        if policy.maximum is not None and amount > policy.maximum:
            return False
        return policy.step is None or (amount - (policy.minimum or 0)) % policy.step == 0
    return not policy.valid_values or amount in policy.valid_values
