"""The scoring strategies of NodeResourcesFit. Integers are divided as Go divides them: towards zero."""

from collections.abc import Callable, Sequence

from podtrail_scheduler.configuration.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ScoringStrategy,
    UtilizationShapePoint,
)
from podtrail_scheduler.framework.extension_points import MAX_SCORE

from .resource_allocation import ResourceUse

Scorer = Callable[[Sequence[ResourceUse]], int]

FULL = 100
"""A utilization of everything, in per cent."""
MAX_SHAPE_SCORE = 10
"""What points of a shape go up to."""


def scorer(strategy: ScoringStrategy) -> Scorer:
    """The strategy of that type.

    Raises:
        KeyError: it is none of the three.
    """
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        return _requested_to_capacity_ratio(strategy)
    return {LEAST_ALLOCATED: least_allocated, MOST_ALLOCATED: most_allocated}[strategy.type]


def least_allocated(allocations: Sequence[ResourceUse]) -> int:
    """The weighted mean of the free shares: the emptier the better."""
    total = weights = 0
    for weight, requested, _, allocatable in allocations:
        if requested <= allocatable:
            total += weight * ((allocatable - requested) * MAX_SCORE // allocatable)
        weights += weight
    return total // weights if weights else 0


def most_allocated(allocations: Sequence[ResourceUse]) -> int:
    """The weighted mean of the used shares: the fuller the better."""
    total = weights = 0
    for weight, requested, _, allocatable in allocations:
        total += weight * (min(requested, allocatable) * MAX_SCORE // allocatable)
        weights += weight
    return total // weights if weights else 0


def broken_linear(shape: Sequence[UtilizationShapePoint]) -> Callable[[int], int]:
    """The line through the points, level before the first and behind the last; 0 to 100 for 0 to 100 per cent."""
    points = [(point.utilization, point.score * (MAX_SCORE // MAX_SHAPE_SCORE)) for point in shape]

    def score(utilization: int) -> int:
        before = points[0]
        for point in points:
            if utilization <= point[0]:
                if point is before:
                    return point[1]
                rise = (point[1] - before[1]) * (utilization - before[0])
                return before[1] + _towards_zero(rise, point[0] - before[0])
            before = point
        return before[1]

    return score


def _requested_to_capacity_ratio(strategy: ScoringStrategy) -> Scorer:
    ratio = strategy.requested_to_capacity_ratio
    line = broken_linear(ratio.shape if ratio is not None else ())

    def score(allocations: Sequence[ResourceUse]) -> int:
        total = weights = 0
        for weight, requested, _, allocatable in allocations:
            share = line(FULL if requested > allocatable else requested * FULL // allocatable)
            if share > 0:
                total += weight * share
                weights += weight
        return (2 * total + weights) // (2 * weights) if weights else 0

    return score


def _towards_zero(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient
