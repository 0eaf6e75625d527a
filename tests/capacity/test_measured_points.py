"""The model against podtrail itself: three layouts under a small load, in processes, through sockets and a broker.

Memory and bytes on disk and network are compared. CPU depends on what else the machine does and on the broker's JVM:
`./dev bench capacity` compares it.
"""

from collections.abc import Mapping
from math import inf
from pathlib import Path

import pytest

from benchmarks.capacity.points import POINTS, Point, Quantity, compare
from podtrail.capacity import measured
from tests.kafka.cluster import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RATE, SECONDS = 15_360, 3.0
LIMITS: Mapping[str, tuple[float, float]] = {
    "cores": (0.0, inf),
    "bytes": (0.6, 1.6),
    "bytes a second": (0.85, 1.15),
}
"""Of what is planned over what is measured, by unit."""


@pytest.mark.parametrize("point", POINTS, ids=[point.layout for point in POINTS])
def test_what_is_planned_is_what_it_takes(point: Point, kafka: Kafka, tmp_path: Path) -> None:
    found = list(compare(point._replace(rate=RATE), measured(), tmp_path, kafka, SECONDS))
    assert found
    assert {each.name: ratio_of(each) for each in found if not is_near(each)} == {}


def ratio_of(quantity: Quantity) -> float:
    return quantity.planned / quantity.measured


def is_near(quantity: Quantity) -> bool:
    low, high = LIMITS[quantity.unit]
    return low <= ratio_of(quantity) <= high
