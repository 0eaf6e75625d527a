"""Traffic made of a simulation: as it is, or as many copies of it side by side as a rate takes.

Copies are those of as many clusters, each at another point of its life: every gap, duration and link stays as the
simulation made it, whatever the rate.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from podtrail.component import Context, Factory
from podtrail.otlp import Batch, Group, frame, split, write_request
from podtrail.otlp.arrival import latest_end
from podtrail.otlp.restamp import Stamp, Template, stamp, templates

_NANOSECONDS = 1_000_000_000
_TAPE_SPANS = 50_000
"""How much is simulated to be copied: some 45 MiB."""
_LINGER = _NANOSECONDS // 5
"""How long a request waits for more to join it."""


class TrafficRequest(NamedTuple):
    """A request and when it is due."""

    due: int
    """Unix nanoseconds."""
    request: bytes
    spans: int


class SimulatedTraffic:
    """What a simulation has made."""

    def __init__(self, begin: int, arrivals: Sequence[tuple[int, Sequence[Group]]], most: int) -> None:
        """Keep requests of at most `most` spans; `begin` is when simulated time began."""
        pieces = [(at - begin, piece) for at, groups in arrivals for piece in _pieces(groups, most)]
        self.begin = begin
        self.length = max(arrivals[-1][0] - begin, 1)
        """Nanoseconds."""
        self.at = [at for at, _ in pieces]
        """When each request comes, nanoseconds since the beginning."""
        self.counts = [sum(group.span_count for group in piece) for _, piece in pieces]
        self.spans = sum(self.counts)
        self.templates: Sequence[Template] = templates([write_request(piece) for _, piece in pieces])

    @property
    def rate(self) -> float:
        """Spans a second."""
        return self.spans * _NANOSECONDS / self.length


def _pieces(groups: Sequence[Group], most: int) -> Iterator[Sequence[Group]]:
    """Part groups so that no part has more than `most` spans."""
    part: list[Group] = []
    room = most
    for group in groups:
        spans = split(group.spans)
        while spans:
            taken, spans = spans[:room], spans[room:]
            part.append(group._replace(spans=frame(taken), span_count=len(taken)))
            room -= len(taken)
            if not room:
                yield part
                part, room = [], most
    if part:
        yield part


def simulated(factory: Factory, config: Any, most: int = 0) -> Iterator[tuple[int, Sequence[Group]]]:
    """Yield what a receiver of simulated spans makes, with the time by which the spans have ended.

    With `most` it is over when that many spans have come.
    """
    loop = asyncio.new_event_loop()
    arrived: list[Batch] = []

    async def consume(batch: Batch) -> None:
        arrived.append(batch)

    run = loop.create_task(factory.create(config, Context(id=factory.type)).run(consume))
    try:
        spans = latest = 0
        while not run.done() and not (most and spans >= most):
            loop.run_until_complete(asyncio.sleep(0))
            for batch in arrived:
                latest = max(latest, latest_end(batch.groups))
                spans += batch.span_count
                yield latest, batch.groups
            arrived.clear()
        if run.done():
            run.result()
    finally:
        run.cancel()
        loop.run_until_complete(asyncio.wait({run}))
        loop.close()


def tape_of(factory: Factory, config: Any, begin: int, most: int) -> SimulatedTraffic | None:
    """Return what there is to be copied, None when the workload makes no spans."""
    arrivals = list(simulated(factory, config, _TAPE_SPANS))
    return SimulatedTraffic(begin, arrivals, most) if arrivals else None


def played(tape: SimulatedTraffic, seed: str, begin: int) -> Iterator[TrafficRequest]:
    """Yield the tape from its beginning, from `begin` on, again and again, without end."""
    number = 0
    while True:
        mark = stamp(seed, number, begin + number * tape.length - tape.begin)
        for at, template, spans in zip(tape.at, tape.templates, tape.counts, strict=True):
            yield TrafficRequest(begin + number * tape.length + at, template.stamped(mark), spans)
        number += 1


def multiplied(tape: SimulatedTraffic, rate: float, seed: str, begin: int) -> Iterator[TrafficRequest]:
    """Yield as many copies side by side as give so many spans a second, from `begin` on, without end.

    Raises:
        ValueError: the tape alone gives more than that.
    """
    apart = tape.spans * _NANOSECONDS / rate
    if apart > tape.length:
        raise ValueError(f"the workload alone gives {tape.rate:,.0f} spans a second")
    marks: dict[int, Stamp] = {}
    waiting: list[tuple[int, int, int]] = []
    earliest = -int(tape.length / apart)

    def enter(number: int, since: int = 0) -> None:
        start = begin + int(number * apart)
        first = bisect_left(tape.at, since)
        if first < len(tape.at):
            marks[number] = stamp(seed, number - earliest, start - tape.begin)
            heappush(waiting, (start + tape.at[first], number, first))

    for number in range(earliest, 0):
        enter(number, -int(number * apart))
    following = 0
    while True:
        while not waiting or begin + int(following * apart) <= waiting[0][0]:
            enter(following)
            following += 1
        due, number, index = heappop(waiting)
        yield TrafficRequest(due, tape.templates[index].stamped(marks[number]), tape.counts[index])
        index += 1
        if index < len(tape.at):
            heappush(waiting, (due - tape.at[index - 1] + tape.at[index], number, index))
        else:
            del marks[number]


def joined(parcels: Iterable[TrafficRequest], most: int) -> Iterator[TrafficRequest]:
    """Yield requests of at most `most` spans made of those that come close together; each is due with its last."""
    # Requests side by side are one request: protobuf merges what is repeated.
    together: list[TrafficRequest] = []
    spans = 0
    for parcel in parcels:
        if together and (spans + parcel.spans > most or parcel.due - together[0].due > _LINGER):
            yield TrafficRequest(together[-1].due, b"".join([each.request for each in together]), spans)
            together, spans = [], 0
        together.append(parcel)
        spans += parcel.spans
    if together:
        yield TrafficRequest(together[-1].due, b"".join([each.request for each in together]), spans)
