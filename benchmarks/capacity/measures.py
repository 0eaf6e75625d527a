"""Measures the figures of `podtrail capacity`: a method a figure, by its name.

What a span takes has a part for its bytes, found with spans of two sizes, and a span takes more where few come, found
at two rates. What a kept span takes is what keeping all of them takes more than keeping some.
"""

import gzip
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from benchmarks.capacity.measuring import Parcel, Run, parcel, run, send
from benchmarks.loopback.contenders import THREE
from benchmarks.loopback.processes import memory_of
from benchmarks.loopback.sink import BACKENDS
from benchmarks.loopback.standing import all_out, standing
from benchmarks.loopback.stations import ALL, Station, Topic
from benchmarks.loopback.wire import read_requests
from benchmarks.pipeline import written_by
from podtrail.capacity import SpanCost
from podtrail.capacity.figures import FEW
from tests.kafka.cluster import Kafka

T = TypeVar("T")

MANY = 51_200.0
"""Spans a second that are not few."""
SECONDS, WAIT, FOREVER = 4.0, 2.0, 3600.0
PADDING = 400
PARTITIONS, MANY_PARTITIONS = 4, 64


class _Runs(NamedTuple, Generic[T]):
    """Of one station: with few small spans, few large ones, many small ones."""

    few: T
    large: T
    many: T


class Measures:
    """What is measured on one machine with one broker.

    CPU is told in microseconds of a machine on which a turn of the calibration loop takes `turn_us`.
    """

    def __init__(self, folder: Path, kafka: Kafka, turn_us: float) -> None:
        self._folder, self._kafka, self._turn_us = folder, kafka, turn_us
        self._few = parcel(folder, "few", FEW, seconds=SECONDS)
        self._large = parcel(folder, "large", FEW, seconds=SECONDS, padding=PADDING)
        self._many = parcel(folder, "many", MANY, seconds=SECONDS)
        self.turns: list[float] = []
        """What a turn took during each run, in microseconds."""

    def sample(self) -> SpanCost:
        """A span that is sampled and not kept."""
        return self._without_kept(self._sampling)

    def send(self) -> SpanCost:
        """A span that is kept, beside what sampling it takes."""
        few, large = self._kept_turns
        return self._cost(few, large, few)

    def forward(self) -> SpanCost:
        """A span that is passed on."""
        return self._of(self._runs(lambda: Station("forward")))

    def balance(self) -> SpanCost:
        """A span that is passed on to one of several."""
        return self._of(self._runs(lambda: Station("balance", backends=BACKENDS)))

    def produce(self) -> SpanCost:
        """A span that is written to a topic."""
        return self._of(self._runs(lambda: Station("produce", to=self._topic())))

    def sample_from_kafka(self) -> SpanCost:
        """A span that is read from a topic, sampled and not kept."""
        return self._without_kept(self._consuming)

    def broker(self) -> SpanCost:
        """A span that is written to a topic and read from it, of many: a JVM is busy with itself where few come."""
        many = self._consuming.many.broker * self._turn_us
        return SpanCost(few_us=many, span_us=many, byte_ns=0)

    def process_bytes(self) -> float:
        """Resident bytes of whoever has nothing to do."""
        return max(each.tiers[0].idle for runs in (self._sampling, self._consuming) for each in runs)

    def held_overhead(self) -> float:
        """Bytes of a held span beside its own."""
        station = Station("holding", policies=THREE, wait=FOREVER)
        with standing([[station]], self._home()) as way, ExitStack() as stack:
            idle, _ = memory_of(way.pids[0][0])
            send(stack, station, self._many, way)
            held, _ = memory_of(way.pids[0][0])
        return (held - idle - self._many.load.span_bytes) / self._many.load.spans

    def peak(self) -> float:
        """Peak of the memory over what is held, while spans come and go."""
        took = self._run(Station("peaking", policies=THREE, wait=WAIT, stitches=True), self._many)
        held = self._many.rate * WAIT * (self._many.span_bytes + self.held_overhead())
        return (took.tiers[0].peak - took.tiers[0].idle) / held

    def partition_bytes(self) -> float:
        """Bytes of a partition."""
        few, many = (self._run(self._consumer(each), self._few) for each in (PARTITIONS, MANY_PARTITIONS))
        return max(0.0, many.tiers[0].peak - few.tiers[0].peak) / (MANY_PARTITIONS - PARTITIONS)

    def broker_bytes(self) -> float:
        """Resident bytes of a broker that has taken all of this."""
        return memory_of(self._kafka.brokers[0].pid)[1]

    def gzip(self) -> float:
        """Bytes on the wire over those of spans; zlib's default level is what grpcio takes."""
        requests = list(read_requests(self._few.requests))
        return sum(len(gzip.compress(each, 6)) for each in requests) / self._few.load.span_bytes

    def wire(self) -> float:
        """Bytes on the wire over those of spans, uncompressed."""
        return sum(map(len, read_requests(self._few.requests))) / self._few.load.span_bytes

    def kafka(self) -> float:
        """Bytes in the files of a topic over those of spans."""
        topic = self._topic()
        self._run(Station("produce", to=topic), self._few)
        files = self._kafka.brokers[0].folder.glob(f"data/{topic.name}-*/*.log")
        return sum(file.stat().st_size for file in files) / self._few.load.span_bytes

    def stored(self) -> float:
        """Bytes written to a queue on disk over those of spans."""
        station = Station("storing", keeps=True)
        with standing([[station]], self._home()) as way, ExitStack() as stack:
            send(stack, station, self._few, way)
            all_out(way.sink, self._few.load, samples=False)
            return written_by(way.pids[0][0]) / self._few.load.span_bytes

    @cached_property
    def _sampling(self) -> _Runs[Run]:
        return self._runs(lambda: Station("sampling", policies=THREE, wait=WAIT, stitches=True))

    @cached_property
    def _consuming(self) -> _Runs[Run]:
        return self._runs(self._consumer)

    @cached_property
    def _kept_turns(self) -> tuple[float, float]:
        """Turns that a small and a large span take more when they are kept."""
        keeping = Station("keeping", policies=ALL, wait=WAIT, stitches=True)
        few, large = (
            (self._run(keeping, what).turns - some.turns) / (1 - some.kept)
            for what, some in ((self._few, self._sampling.few), (self._large, self._sampling.large))
        )
        return few, large

    def _consumer(self, partitions: int = PARTITIONS) -> Station:
        return Station("consuming", source=self._topic(partitions), policies=THREE, wait=WAIT, stitches=True)

    def _runs(self, station: Callable[[], Station]) -> _Runs[Run]:
        return _Runs(*(self._run(station(), what) for what in (self._few, self._large, self._many)))

    def _run(self, station: Station, what: Parcel) -> Run:
        found = run([[station]], what, self._home(), self._kafka)
        self.turns.append(found.turn_us)
        return found

    def _of(self, runs: _Runs[Run]) -> SpanCost:
        return self._cost(*(each.turns for each in runs))

    def _without_kept(self, runs: _Runs[Run]) -> SpanCost:
        small, large = self._kept_turns
        sizes = _Runs(small, large, small)
        return self._cost(*(each.turns - each.kept * kept for each, kept in zip(runs, sizes, strict=True)))

    def _cost(self, few: float, large: float, many: float) -> SpanCost:
        """Return the cost of a span from the turns that it took where few came, large ones, and many."""
        size = self._few.span_bytes
        byte = max(0.0, (large - few) / (self._large.span_bytes - size))
        few_small = max(0.0, few - byte * size)
        rest = max(0.0, (many * MANY - few_small * FEW) / (MANY - FEW) - byte * size * MANY / (MANY - FEW))
        turn = self._turn_us
        return SpanCost(few_us=few_small * turn, span_us=rest * turn, byte_ns=byte * turn * 1e3)

    def _topic(self, partitions: int = PARTITIONS) -> Topic:
        name = self._kafka.topic(partitions=partitions)
        return Topic(self._kafka.bootstrap(), name, group=f"group of {name}")

    def _home(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder))
