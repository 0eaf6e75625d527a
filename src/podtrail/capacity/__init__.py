"""How much podtrail takes for a rate of Pods: replicas, partitions, memory, disk, network, money. A model, no I/O."""

from podtrail.capacity.figures import Figures, SpanCost, measured
from podtrail.capacity.layouts import Layout, Tier, layouts, reason, recommended
from podtrail.capacity.prices import Prices, monthly_cost
from podtrail.capacity.traffic import Circumstances, Traffic

__all__ = [
    "Circumstances",
    "Figures",
    "Layout",
    "Prices",
    "SpanCost",
    "Tier",
    "Traffic",
    "layouts",
    "measured",
    "monthly_cost",
    "reason",
    "recommended",
]
