"""What a span costs `podtrail run` that samples tails, in CPU and memory, against a bare gRPC server and Rotel.

OTLP/gRPC in, tail sampling (status, latency, 5 %), batch, OTLP/gRPC out with gzip; 512 spans a request, a trace's 35
spans spread over requests. The floor takes the same bytes and does nothing with them. Rotel passes all of the load on,
also with gzip, and decides nothing. Sender and sink are processes of their own; what comes out is checked.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, Protocol

import psutil

from benchmarks.load import SPANS_A_TRACE, Load, make_load
from benchmarks.loopback.contenders import DECISION_WAIT, contenders
from benchmarks.loopback.processes import Ports, beside, free_ports, wait_for
from benchmarks.loopback.sender import send_all
from benchmarks.loopback.sink import Came, take_all
from benchmarks.loopback.wire import write_requests

TRACES = 30_000
ROUNDS = 3
_QUIET = 1.5
_LIMIT = 60.0
"""Seconds after which what has not come out will not come any more, however busy the machine is."""


class Cost(NamedTuple):
    """What one run cost."""

    cpu: float
    """Microseconds a span, user and system."""
    peak: float
    """MiB of resident memory."""
    kept: float
    """Share of the spans that came out."""
    rate: float
    """Spans a second that were taken."""
    written: int
    """Bytes that went to a disk."""


class Measured(Protocol):
    """Who can be measured."""

    @property
    def name(self) -> str:
        """What its files are called."""

    @property
    def sends(self) -> bool:
        """Whether it sends on what it takes."""

    @property
    def samples(self) -> bool:
        """Whether it keeps only what is worth keeping."""

    def command(self, ports: Ports, home: Path) -> list[str]:
        """Return the command; its files go to `home`."""


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def written_by(pid: int) -> int:
    """Return the bytes that a process has handed to a disk, or is about to."""
    counters = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    found = re.search(r"^write_bytes: (\d+)", counters, re.MULTILINE)
    assert found is not None
    return int(found[1])


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def measure(contender: Measured, load: Load, requests: Path, home: Path) -> Cost:
    """Run a contender once with the whole load. SystemExit when what came out is not right."""
    ports = free_ports()
    with ExitStack() as stack:
        sink = beside(stack, take_all, ports.sink)
        stack.callback(sink.send, None)
        log = stack.enter_context((home / f"{contender.name}.log").open("wb"))
        process = subprocess.Popen(contender.command(ports, home), stdout=log, stderr=log)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        wait_for(ports.otlp, process)
        sender = beside(stack, send_all, requests, ports.otlp)
        before = _cpu(process.pid)
        sender.send("go")
        took: float | str = sender.recv()
        if isinstance(took, str):
            raise SystemExit(f"{contender.name}: {took}")
        if contender.samples:
            time.sleep(DECISION_WAIT)
        came = _came_out(sink, contender, load)
        cpu, peak, written = _cpu(process.pid) - before, _peak(process.pid), written_by(process.pid)
    if not _is_right(came, contender, load):
        *_, last = (home / f"{contender.name}.log").read_text(encoding="utf-8").splitlines() or [""]
        raise SystemExit(f"{contender.name}: {load.spans} spans went in, what came out is wrong: {came}\n{last}")
    return Cost(cpu / load.spans * 1e6, peak, came.spans / load.spans, load.spans / took, written)


def _came_out(sink: Connection, contender: Measured, load: Load) -> Came:
    """Return what came out once all is there and nothing follows, or when the time for it is over."""
    until = time.monotonic() + _LIMIT
    while True:
        sink.send("idle")
        quiet: float = sink.recv()
        if quiet >= _QUIET or not contender.sends:
            sink.send((SPANS_A_TRACE, load.telling))
            came: Came = sink.recv()
            if _is_right(came, contender, load) or time.monotonic() > until:
                return came
        time.sleep(0.2)


def _is_right(came: Came, contender: Measured, load: Load) -> bool:
    if not contender.sends:
        return True
    if came.repeated or came.cut or came.missing:
        return False
    return came.spans < load.spans / 4 if contender.samples else came.spans == load.spans


def main() -> None:
    """Print CPU and memory of each, and their ratios round by round."""
    load = make_load(TRACES)
    costs: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        requests = home / "requests"
        write_requests(requests, load.requests)
        load.requests.clear()
        print(
            f"{load.spans} spans, {load.span_bytes / load.spans:.0f} bytes each; min / median of {ROUNDS}", flush=True
        )
        for _ in range(ROUNDS):
            for contender in contenders():
                costs.setdefault(contender.name, []).append(measure(contender, load, requests, home))
    for name, runs in costs.items():
        cpu, peak = [run.cpu for run in runs], [run.peak for run in runs]
        print(
            f"{name:<10} {min(cpu):5.2f} / {statistics.median(cpu):5.2f} us a span   "
            f"{min(peak):4.0f} / {statistics.median(peak):4.0f} MiB peak   {runs[0].kept:6.1%} came out"
        )
    for name in costs.keys() - {"podtrail"}:
        ratios = [ours.cpu / theirs.cpu for ours, theirs in zip(costs["podtrail"], costs[name], strict=True)]
        print(f"podtrail : {name:<8} {min(ratios):.2f} / {statistics.median(ratios):.2f} CPU")
    if "rotel" not in costs:
        print("rotel is not installed: no ratio to it", file=sys.stderr)


if __name__ == "__main__":
    main()
