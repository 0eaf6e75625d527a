"""podtrail laid out in three ways, each under a steady load: what that took beside what the model says of it."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.capacity.measuring import Parcel, Run, parcel, run
from benchmarks.load import SPANS_A_TRACE
from benchmarks.loopback.contenders import FAILED, SLOW, THREE, Policy
from benchmarks.loopback.stations import Station, Topic
from podtrail.capacity import Circumstances, Figures, Layout, Tier, Traffic, layouts
from tests.kafka.cluster import Kafka

_HALF: Sequence[Policy] = (
    FAILED,
    SLOW,
    {"name": "half", "type": "probabilistic", "probabilistic": {"sampling_percentage": 45}},
)
GATEWAYS = 2
PARTITIONS = 4


class Point(NamedTuple):
    """A way to lay podtrail out, and what comes to it."""

    layout: str
    rate: float
    """Spans a second."""
    wait: float
    """Seconds that a trace is held."""
    padding: int
    """Characters that a span has besides."""
    policies: Sequence[Policy]

    @property
    def told(self) -> str:
        """It in words."""
        return f"{self.layout}, {self.rate:,.0f} spans/s, held {self.wait:g} s"


class Quantity(NamedTuple):
    """Something that was measured and can be planned."""

    name: str
    unit: str
    planned: float
    measured: float


POINTS = (
    Point("sidecar", 51_200, 3.0, 0, THREE),
    Point("gateway", 20_480, 5.0, 300, _HALF),
    Point("kafka", 40_960, 4.0, 0, THREE),
)


def compare(point: Point, figures: Figures, folder: Path, kafka: Kafka, seconds: float) -> Iterator[Quantity]:
    """Yield what a point took for so many seconds, and what is planned for it."""
    what = parcel(folder, point.layout, point.rate, seconds=seconds + point.wait, padding=point.padding)
    topic = Topic(kafka.bootstrap(), kafka.topic(partitions=PARTITIONS))
    tiers = _tiers(point, topic)
    found = run(tiers, what, Path(tempfile.mkdtemp(dir=folder)), kafka if point.layout == "kafka" else None)
    layout = _planned(point, what, found, figures)
    lasted = what.load.spans / what.rate
    for tier, took in zip([each for each in layout.tiers if each.name != "brokers"], found.tiers, strict=True):
        # What is left undecided at the end is decided in the time after it, so spans are all there is to divide by.
        cores = took.turns * what.load.spans * found.turn_us / 1e6 / lasted
        yield Quantity(f"{tier.name}, busy", "cores", tier.busy, cores)
        yield Quantity(f"{tier.name}, memory each", "bytes", tier.memory, took.peak)
    if point.layout == "kafka":
        yield from _of_kafka(layout, found, what, kafka, topic)


def _tiers(point: Point, topic: Topic) -> list[list[Station]]:
    deciding = Station(point.layout, policies=point.policies, wait=point.wait, stitches=True)
    match point.layout:
        case "sidecar":
            return [[deciding]]
        case "gateway":
            return [[Station("agent")], [deciding]]
        case _:
            gateways = [deciding._replace(name=f"gateway-{number}", source=topic) for number in range(GATEWAYS)]
            return [[Station("agent", to=topic)], gateways]


def _planned(point: Point, what: Parcel, found: Run, figures: Figures) -> Layout:
    traffic = Traffic(
        pods_per_second=point.rate / SPANS_A_TRACE,
        schedulers=1,
        spans_per_attempt=SPANS_A_TRACE,
        span_bytes=what.span_bytes,
        kept=found.kept,
        decision_wait=point.wait,
    )
    speed = figures.turn_us / found.turn_us
    around = Circumstances(gateways=GATEWAYS, spare=0, replication=1, growth=PARTITIONS / GATEWAYS, speed=speed)
    (layout,) = (each for each in layouts(traffic, around, figures) if each.name == point.layout)
    return layout


def _of_kafka(layout: Layout, found: Run, what: Parcel, kafka: Kafka, topic: Topic) -> Iterator[Quantity]:
    brokers: Tier = layout.tiers[1]
    lasted = what.load.spans / what.rate
    yield Quantity(
        "brokers, busy", "cores", brokers.busy, found.broker * what.load.spans * found.turn_us / 1e6 / lasted
    )
    files = kafka.brokers[0].folder.glob(f"data/{topic.name}-*/*.log")
    written = sum(file.stat().st_size for file in files)
    yield Quantity("topic", "bytes a second", brokers.received, written / lasted)
