"""Runs stations at a steady rate between two calibrations, and says what that took.

CPU is told in turns of the calibration loop, as the times of a machine that others use mean nothing.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import SPANS_A_TRACE, Load, make_load
from benchmarks.loopback.messages import produce_at, spans_in, write_messages
from benchmarks.loopback.paced import send_at
from benchmarks.loopback.processes import beside, cpu_of, memory_of
from benchmarks.loopback.standing import Standing, all_out, complain, is_whole, standing
from benchmarks.loopback.stations import Station
from benchmarks.loopback.wire import write_requests
from podtrail.capacity.calibration import turn_us
from tests.kafka.cluster import Kafka

SPANS_A_REQUEST = 512
_TURNS = 8


class Parcel(NamedTuple):
    """A load in files, as requests and as messages, and the rate at which it comes."""

    load: Load
    requests: Path
    messages: Path
    rate: float
    """Spans a second."""
    message_rate: float
    """Messages a second."""

    @property
    def span_bytes(self) -> float:
        """Bytes of a span."""
        return self.load.span_bytes / self.load.spans


class Took(NamedTuple):
    """What a tier took for a load."""

    turns: float
    """Turns of the calibration loop a span, of all of its stations."""
    idle: int
    """Resident bytes of its largest station before the first span."""
    peak: int
    """The most that they ever were."""


class Run(NamedTuple):
    """What all tiers took, from the sender's side."""

    tiers: list[Took]
    broker: float
    """Turns of the broker, a span; 0 without one."""
    kept: float
    """Share of the spans that came out."""
    turn_us: float
    """What a turn took meanwhile, in microseconds."""

    @property
    def turns(self) -> float:
        """Turns of the first tier, a span."""
        return self.tiers[0].turns


def parcel(folder: Path, name: str, rate: float, *, seconds: float, padding: int = 0) -> Parcel:
    """Write a load that comes at a rate, in spans, for so many seconds."""
    load = make_load(int(rate * seconds / SPANS_A_TRACE), padding=padding)
    requests, messages = folder / f"{name}.requests", folder / f"{name}.messages"
    write_requests(requests, load.requests)
    count = write_messages(messages, load.requests)
    load.requests.clear()
    return Parcel(load, requests, messages, rate, rate * count / load.spans)


def run(tiers: Sequence[Sequence[Station]], what: Parcel, home: Path, kafka: Kafka | None = None) -> Run:
    """Have spans come to the first tier at their rate. SystemExit when what came out is not right."""
    before = turn_us(_TURNS)
    with standing(tiers, home) as way, ExitStack() as stack:
        brokers = [kafka.brokers[0].pid] if kafka else []
        idle = [max(memory_of(pid)[0] for pid in tier) for tier in way.pids]
        groups = [*way.pids, brokers]
        used = [_cpu(group) for group in groups]
        send(stack, tiers[0][0], what, way)
        kept = _kept(tiers[-1], what, way)
        used = [_cpu(group) - was for group, was in zip(groups, used, strict=True)]
        peaks = [max(memory_of(pid)[1] for pid in tier) for tier in way.pids]
    turn = (before + turn_us(_TURNS)) / 2
    *turns, broker = (cpu * 1e6 / turn / what.load.spans for cpu in used)
    return Run([Took(*each) for each in zip(turns, idle, peaks, strict=True)], broker, kept, turn)


def _cpu(pids: Sequence[int]) -> float:
    return sum(map(cpu_of, pids))


def send(stack: ExitStack, first: Station, what: Parcel, way: Standing) -> None:
    """Send a load to the first station, or into its topic, at its rate."""
    if first.source is None:
        sender = beside(stack, send_at, what.requests, way.otlp, what.rate / SPANS_A_REQUEST)
    else:
        sender = beside(stack, produce_at, what.messages, first.source, what.message_rate)
    sender.send("go")
    if isinstance(wrong := sender.recv(), str):
        complain([first], wrong, way.home)


def _kept(last: Sequence[Station], what: Parcel, way: Standing) -> float:
    if (topic := last[0].to) is not None:
        return spans_in(topic, what.load.spans) / what.load.spans
    samples = last[0].samples
    came = all_out(way.sink, what.load, samples=samples)
    if not is_whole(came, what.load, samples=samples):
        complain(last, f"{what.load.spans} spans went in, what came out is wrong: {came}", way.home)
    return came.spans / what.load.spans
