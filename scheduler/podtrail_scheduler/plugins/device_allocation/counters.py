"""Counters that the devices of a pool share: what those that are allocated leave (KEP-4815)."""

from collections.abc import Container

from podtrail_scheduler.objects.resource import DeviceId

from .pools import Pool

CountersLeft = dict[tuple[str, str], int]
"""By the name of the set and of the counter."""


def counters_left(pool: Pool, allocated: Container[DeviceId]) -> CountersLeft:
    """Of each counter of the pool: what allocated devices, those for other nodes included, do not take."""
    left = {
        (counter_set, name): amount
        for counter_set, counters in (pool.counters or {}).items()
        for name, amount in counters.items()
    }
    for each in (*pool.slices, *pool.elsewhere):
        for device in each.devices:
            if device.consumes_counters and DeviceId(pool.id.driver, pool.id.name, device.name) in allocated:
                for counter_set, counters in device.consumes_counters:
                    for name, amount in counters.items():
                        left[counter_set, name] -= amount
    return left
