"""Devices that are made ready for a Pod after they were allocated: what their drivers say in the claim's status."""

from podtrail_scheduler.objects.resource import AllocatedDevice, ResourceClaim


class BindingFailedError(Exception):
    """A driver gave a device up."""


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether any device of the claim must be waited for."""
    return claim.allocation is not None and any(each.binding_conditions for each in claim.allocation.devices)


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all conditions of all its devices are true.

    Raises:
        BindingFailedError: one of the failure conditions is true.
    """
    if claim.allocation is None:
        return False
    return all(_device_ready(claim, each) for each in claim.allocation.devices if each.binding_conditions)


def is_overdue(claim: ResourceClaim, now: int, timeout: int) -> bool:
    """Whether a device of it has been waited for longer than `timeout` nanoseconds since it was allocated."""
    allocation = claim.allocation
    if allocation is None or allocation.timestamp is None or not has_conditions(claim):
        return False
    return allocation.timestamp + timeout < now


def _device_ready(claim: ResourceClaim, device: AllocatedDevice) -> bool:
    status = next((each for each in claim.devices if each.id == device.id), None)
    if status is None:
        return False
    for kind in device.binding_failure_conditions:
        value, reason, message = status.conditions.get(kind, ("", "", ""))
        if value == "True":
            raise BindingFailedError(f'device binding failed: claim={claim.name}, reason={reason}, message="{message}"')
    return all(status.conditions.get(kind, ("",))[0] == "True" for kind in device.binding_conditions)
