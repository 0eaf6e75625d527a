"""Stations that stand between a sender and the sink: started from the sink on, ready when all of them listen."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import SPANS_A_TRACE, Load
from benchmarks.loopback.processes import beside, free_ports, wait_for
from benchmarks.loopback.sink import Came, take_all
from benchmarks.loopback.stations import Station

_QUIET, _LIMIT = 1.5, 60.0
"""Seconds without a span after which all may be out, and after which what has not come will not come any more."""


class Standing(NamedTuple):
    """Stations that run."""

    otlp: int
    """Port of the first, where it takes OTLP."""
    sink: Connection
    sink_port: int
    pids: list[list[int]]
    """Processes of each tier."""
    home: Path


@contextmanager
def standing(tiers: Sequence[Sequence[Station]], home: Path) -> Iterator[Standing]:
    """Run tiers one behind the other, the stations of a tier side by side; a station before another has one behind it.

    A tier that takes from a topic stands apart from the one that writes to it.
    """
    with ExitStack() as stack:
        sink_port = free_ports().sink
        sink = beside(stack, take_all, sink_port)
        stack.callback(sink.send, None)
        to, pids = sink_port, []
        for tier in reversed(tiers):
            started = [start(stack, station, to, home) for station in tier]
            pids.append([pid for pid, _ in started])
            to = started[0][1] if tier[0].source is None else to
        yield Standing(to, sink, sink_port, pids[::-1], home)


def start(stack: ExitStack, station: Station, to: int, home: Path) -> tuple[int, int]:
    """Start a station that sends to a port; return its process and its own port once it is ready."""
    ports = free_ports()._replace(sink=to)
    log = stack.enter_context((home / f"{station.name}.log").open("wb"))
    process = subprocess.Popen(station.command(ports, home), stdout=log, stderr=log)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    wait_for(ports.spare, process)
    if station.source is None:
        wait_for(ports.otlp, process)
    return process.pid, ports.otlp


def all_out(sink: Connection, load: Load, *, samples: bool) -> Came:
    """Return what came out once all is there and nothing follows, or when the time for it is over."""
    until = time.monotonic() + _LIMIT
    while True:
        sink.send("idle")
        if sink.recv() > _QUIET:
            sink.send((SPANS_A_TRACE, load.telling))
            came: Came = sink.recv()
            if time.monotonic() > until or is_whole(came, load, samples=samples):
                return came
        time.sleep(0.2)


def is_whole(came: Came, load: Load, *, samples: bool) -> bool:
    """Say whether all came that had to, whole and once."""
    if came.repeated or came.cut or came.missing:
        return False
    return 0 < came.spans < load.spans if samples else came.spans == load.spans


def complain(stations: Sequence[Station], what: str, home: Path) -> None:
    """End the benchmark with what is wrong and the last that its stations said.

    Raises:
        SystemExit: always.
    """
    said = [(home / f"{station.name}.log").read_text("utf-8", "replace")[-1500:] for station in stations]
    raise SystemExit("\n".join((f"{stations[0].name}: {what}", *said)))
