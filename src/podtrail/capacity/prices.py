"""What a layout costs a month, at the prices of whoever pays."""

from typing import NamedTuple

from podtrail.capacity.layouts import Layout

HOURS = 730
"""Hours of a month."""
_GIB = 1 << 30
_SECONDS = 3600


class Prices(NamedTuple):
    """Prices in one currency. What has none is not counted."""

    core_hour: float | None = None
    gib_hour: float | None = None
    """Of memory."""
    disk_gib_month: float | None = None
    network_gib: float | None = None
    """Of what a tier sends."""


def monthly_cost(layout: Layout, prices: Prices) -> float | None:
    """Return what a layout costs a month; None when there is no price."""
    if prices == Prices():
        return None
    return sum(
        tier.replicas
        * (
            tier.cores * HOURS * (prices.core_hour or 0)
            + tier.memory / _GIB * HOURS * (prices.gib_hour or 0)
            + tier.disk / _GIB * (prices.disk_gib_month or 0)
        )
        + tier.sent / _GIB * HOURS * _SECONDS * (prices.network_gib or 0)
        for tier in layout.tiers
    )
