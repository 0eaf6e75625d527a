"""What Kafka costs between agents and gateways: CPU a span, one to four consumers, and how long a join is felt.

Spans come to a gateway that samples tails over OTLP/gRPC, or as messages of a topic, a trace's of a batch each: small
ones of one request's spans, and those that `batch` in front of an exporter makes. Once podtrail, once the Go Collector
where BENCH_COLLECTOR names one with `kafka` and `tail_sampling`; all get the same spans, and what comes out is checked.
An agent writes them into a topic. A hop that only gathers traces writes them into another topic by Pod. Consumers of
one group share four partitions, and while small messages come at a steady rate a second consumer joins the first. Needs
what `tests/kafka/build.sh` fetches.
"""

import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import Load, make_load
from benchmarks.loopback.contenders import COLLECTOR, THREE
from benchmarks.loopback.messages import first_spans, produce_all, produce_at, spans_in, write_messages
from benchmarks.loopback.processes import beside, cpu_of
from benchmarks.loopback.sender import send_all
from benchmarks.loopback.standing import all_out, complain, is_whole, standing, start
from benchmarks.loopback.stations import ALL, Station, Topic
from benchmarks.loopback.wire import write_requests
from benchmarks.pipeline import measure
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import DEFAULT_ASSETS

TRACES = int(os.environ.get("BENCH_TRACES", "12000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
PARTITIONS = 4
LIMIT = 1.1
"""What a span may cost with more consumers, over what it costs with one."""
WAIT = 4.0
"""Seconds that a trace is held."""
HOP = 1.0
"""Seconds that the second hop holds one, which samples nothing."""
RATE = 1000
"""Messages a second while a consumer joins."""
STEADY_TRACES = 7000
JOINS_AFTER, WARM_UP, LAST = 12.0, 3.0, 2.0
"""Seconds: after the first message, until the second consumer is started, and until delays count; before the time of
the last message within which nothing is decided any more by records, but when a partition counts as idle."""


class Consumed(NamedTuple):
    """What consumers of one group did with a topic."""

    cpu: float
    """Microseconds a span, of all consumers."""
    broker: float
    """Microseconds a span, of the broker."""


class Joined(NamedTuple):
    """What was felt of a consumer that joined."""

    ordinary: float
    """The longest that a message took before, in seconds, beyond the time for which its trace was held."""
    at_join: float
    """The longest that one took from then on."""
    delayed: int
    """Messages that took longer than the ordinary longest."""
    messages: int
    wrong: int
    """Traces that came in parts, twice, or not although they had to."""


@contextmanager
def broker(folder: Path) -> Iterator[Kafka]:
    """A broker. SystemExit where there is none to be had."""
    assets = Path(os.environ.get("PODTRAIL_KAFKA_ASSETS") or DEFAULT_ASSETS)
    if not (assets / "bootstrap.checkpoint").is_file():
        raise SystemExit(f"needs Kafka's jars in {assets}: tests/kafka/build.sh fetches them")
    kafka = Kafka(assets, folder)
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.stop()


def consume(tiers: Sequence[Sequence[Station]], load: Load, messages: Path, home: Path, kafka: Kafka) -> Consumed:
    """Have tiers take the messages of a load, as these are written. SystemExit when what came out is not right."""
    with standing(tiers, home) as way, ExitStack() as stack:
        writer = beside(stack, produce_all, messages, tiers[0][0].source)
        pids = [*chain(*way.pids), kafka.brokers[0].pid]
        before = [cpu_of(pid) for pid in pids]
        writer.send("go")
        if isinstance(wrong := writer.recv(), str):
            raise SystemExit(wrong)
        came = all_out(way.sink, load, samples=True)
        *ours, of_broker = (cpu_of(pid) - was for pid, was in zip(pids, before, strict=True))
    if not is_whole(came, load, samples=True):
        complain([*chain(*tiers)], f"{load.spans} spans went in, what came out is wrong: {came}", home)
    return Consumed(sum(ours) / load.spans * 1e6, of_broker / load.spans * 1e6)


def join(first: Station, second: Station, load: Load, messages: Path, home: Path) -> Joined:
    """Have a second consumer join the first while messages come at `RATE`; return what was felt of it."""
    with standing([[first]], home) as way, ExitStack() as stack:
        writer = beside(stack, produce_at, messages, first.source, RATE)
        writer.send("go")
        time.sleep(JOINS_AFTER)
        joined = time.monotonic()
        start(stack, second, way.sink_port, home)
        written: list[float] | str = writer.recv()
        if isinstance(written, str):
            raise SystemExit(written)
        came = all_out(way.sink, load, samples=True)
        way.sink.send("arrivals")
        arrived: dict[bytes, float] = way.sink.recv()
    ids = first_spans(messages)
    took = [(at, arrived[id] - at - first.wait) for at, id in zip(written, ids, strict=True) if id in arrived]
    ordinary = max(delay for at, delay in took if at - written[0] > WARM_UP and at < joined - first.wait)
    at_join = [delay for at, delay in took if joined - first.wait <= at < written[-1] - first.wait - LAST]
    return Joined(
        ordinary=ordinary,
        at_join=max(at_join),
        delayed=sum(delay > ordinary for delay in at_join),
        messages=len(at_join),
        wrong=came.repeated + came.cut + came.missing,
    )


class KafkaBench:
    """A load, as requests and as messages, and the ways that it takes."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        """Make the load; what is written goes into `folder`."""
        self._folder, self._kafka = folder, kafka
        self.load = make_load(TRACES)
        self._requests = folder / "requests"
        write_requests(self._requests, self.load.requests)
        self._messages = {"batched": folder / "batched", "small": folder / "small"}
        self.counts = {
            "batched": write_messages(self._messages["batched"], self.load.requests),
            "small": write_messages(self._messages["small"], self.load.requests, 1),
        }
        self._steady = make_load(STEADY_TRACES, seed=2)
        self._paced = folder / "paced"
        write_messages(self._paced, self._steady.requests, 1)

    def direct(self, product: str) -> float:
        """Return microseconds a span over OTLP/gRPC."""
        station = Station(f"{product}-otlp", product, policies=THREE, wait=WAIT)
        return measure(station, self.load, self._requests, self._home()).cpu

    def agent(self, product: str) -> float:
        """Return microseconds a span from OTLP/gRPC into a topic."""
        topic, home = self._topic(), self._home()
        station = Station(f"{product}-agent", product, to=topic)
        with standing([[station]], home) as way, ExitStack() as stack:
            sender = beside(stack, send_all, self._requests, way.otlp)
            before = cpu_of(way.pids[0][0])
            sender.send("go")
            if isinstance(wrong := sender.recv(), str):
                complain([station], wrong, home)
            there = spans_in(topic, self.load.spans)
            cpu = cpu_of(way.pids[0][0]) - before
        if there != self.load.spans:
            complain([station], f"{self.load.spans} spans went in, {there} are in the topic", home)
        return cpu / self.load.spans * 1e6

    def through(self, product: str, form: str, consumers: int = 1) -> Consumed:
        """Return what a span took through Kafka, in messages of a form."""
        return consume([self._stations(product, consumers)], self.load, self._messages[form], self._home(), self._kafka)

    def hops(self) -> Consumed:
        """Return what a span took through the second hop of docs/kafka.md and the consumer behind it."""
        (last,) = self._stations("podtrail", 1)
        hop = Station("podtrail-hop", source=self._topic(), to=last.source, key="pod", policies=ALL, wait=HOP)
        return consume([[hop], [last]], self.load, self._messages["batched"], self._home(), self._kafka)

    def joined(self, product: str) -> Joined:
        """Return what was felt of a join."""
        first, second = self._stations(product, 2)
        return join(first, second, self._steady, self._paced, self._home())

    def _stations(self, product: str, consumers: int) -> list[Station]:
        topic = self._topic()
        return [
            Station(f"{product}-{number}", product, source=topic, policies=THREE, wait=WAIT)
            for number in range(consumers)
        ]

    def _topic(self) -> Topic:
        name = self._kafka.topic(partitions=PARTITIONS)
        return Topic(self._kafka.bootstrap(), name, f"group of {name}")

    def _home(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder))


def _round(bench: KafkaBench, product: str, ways: defaultdict[str, list[float]]) -> None:
    ways[f"{product} otlp"].append(bench.direct(product))
    ways[f"{product} agent"].append(bench.agent(product))
    ways[f"{product} small"].append(bench.through(product, "small").cpu)
    for consumers in (1, 2, 3, 4) if product == "podtrail" else (1,):
        found = bench.through(product, "batched", consumers)
        ways[f"{product} kafka {consumers}"].append(found.cpu)
        if consumers == 1:
            ways[f"{product}'s broker"].append(found.broker)
    if product == "podtrail":
        found = bench.hops()
        ways["podtrail two hops"].append(found.cpu)
        ways["broker of two hops"].append(found.broker)


def main() -> None:
    """Print what a span costs by each way, what more consumers make of it, and what is felt of one that joins."""
    products = ("podtrail", *(["collector"] if COLLECTOR else []))
    ways: defaultdict[str, list[float]] = defaultdict(list)
    joins: defaultdict[str, list[Joined]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder) / "kafka") as kafka:
        bench = KafkaBench(Path(folder), kafka)
        forms = ", ".join(f"{count} {form}" for form, count in bench.counts.items())
        print(f"{bench.load.spans} spans, messages: {forms}; min / median of {ROUNDS}", flush=True)
        for _ in range(ROUNDS):
            for product in products:
                _round(bench, product, ways)
                joins[product].append(bench.joined(product))
    for name, costs in ways.items():
        print(f"{name:<22} {min(costs):5.2f} / {statistics.median(costs):5.2f} us a span")
    for name, to, limit in _PAIRS:
        if name in ways and to in ways:
            _compare(name, to, ways, limit)
    for product, felt in joins.items():
        for each in felt:
            print(
                f"{product}, a consumer joins: {each.at_join:.2f} s at most, {each.at_join / each.ordinary:.1f} of the "
                f"longest before; {each.delayed} of {each.messages} messages took longer; {each.wrong} traces wrong"
            )
    if not COLLECTOR:
        print("BENCH_COLLECTOR names no Collector: no ratio to it", file=sys.stderr)


def _compare(name: str, to: str, ways: defaultdict[str, list[float]], limit: float) -> None:
    ratios = [one / other for one, other in zip(ways[name], ways[to], strict=True)]
    held = f"   {'holds' if statistics.median(ratios) <= limit else 'MISSED'} (limit {limit})" if limit else ""
    print(f"{name} : {to}   {min(ratios):.2f} / {statistics.median(ratios):.2f} CPU{held}")


_PAIRS = (
    ("podtrail kafka 1", "podtrail otlp", 0.0),
    ("podtrail small", "podtrail otlp", 0.0),
    ("podtrail two hops", "podtrail kafka 1", 0.0),
    ("broker of two hops", "podtrail's broker", 0.0),
    ("collector kafka 1", "collector otlp", 0.0),
    ("collector small", "collector otlp", 0.0),
    ("podtrail otlp", "collector otlp", 0.0),
    ("podtrail agent", "collector agent", 0.0),
    ("podtrail kafka 1", "collector kafka 1", 0.0),
    ("podtrail small", "collector small", 0.0),
    *((f"podtrail kafka {consumers}", "podtrail kafka 1", LIMIT) for consumers in (2, 3, 4)),
)

if __name__ == "__main__":
    main()
