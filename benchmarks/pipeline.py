"""What a span costs `podtrail run` that samples tails, in CPU and memory, against a bare gRPC server and Rotel.

OTLP/gRPC in, tail sampling (status, latency, 5 %), batch, OTLP/gRPC out with gzip; 512 spans a request, a trace's 35
spans spread over requests. The floor takes the same bytes and does nothing with them. Rotel passes all of the load on,
also with gzip, and decides nothing. With BENCH_COLLECTOR=/path/to/otelcol a Go Collector (`tail_sampling`, `batch`,
`otlp_grpc`) runs the same configuration. Sender and sink are processes of their own; what comes out is checked. At full
speed who is fast decides while the sender is idle: `--rate 150000` sends steadily, `--busy 2` counts in two processes
beside. `--refused` measures something else: a request that is refused for want of memory, beside one that is taken.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.load import SPANS_A_REQUEST, SPANS_A_TRACE, Load, make_load
from benchmarks.loopback.contenders import DECISION_WAIT, contenders
from benchmarks.loopback.processes import Ports, beside, busy_loops, cpu_of, free_ports, memory_of, wait_for
from benchmarks.loopback.refused import tell_refused
from benchmarks.loopback.sender import send_steadily
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


def written_by(pid: int) -> int:
    """Return the bytes that a process has handed to a disk, or is about to."""
    counters = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    found = re.search(r"^write_bytes: (\d+)", counters, re.MULTILINE)
    assert found is not None
    return int(found[1])


def measure(contender: Measured, load: Load, requests: Path, home: Path, rate: float = 0) -> Cost:
    """Run a contender once with the whole load, `rate` spans a second (0: as many as it takes).

    Raises:
        SystemExit: What came out is not right.
    """
    ports = free_ports()
    with ExitStack() as stack:
        sink = beside(stack, take_all, ports.sink)
        stack.callback(sink.send, None)
        log = stack.enter_context((home / f"{contender.name}.log").open("wb"))
        process = subprocess.Popen(contender.command(ports, home), stdout=log, stderr=log)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        wait_for(ports.otlp, process)
        sender = beside(stack, send_steadily, requests, ports.otlp, rate / SPANS_A_REQUEST)
        before = cpu_of(process.pid)
        sender.send("go")
        took: float | str = sender.recv()
        if isinstance(took, str):
            raise SystemExit(f"{contender.name}: {took}")
        if contender.samples:
            time.sleep(DECISION_WAIT)
        came = _came_out(sink, contender, load)
        cpu, peak, written = (
            cpu_of(process.pid) - before,
            memory_of(process.pid)[1] / (1 << 20),
            written_by(process.pid),
        )
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


def main(arguments: Sequence[str] = ()) -> int:
    """Print CPU and memory of each, and their ratios round by round."""
    reader = argparse.ArgumentParser(prog="./dev bench pipeline", description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--rate", type=float, default=0, help="spans a second (0: as many as are taken)")
    reader.add_argument("--busy", type=int, default=0, help="processes that count beside (0)")
    reader.add_argument(
        "--wait",
        type=float,
        default=DECISION_WAIT,
        help=f"decision_wait in seconds ({DECISION_WAIT:g}): longer than a busy machine lets a sender stand still",
    )
    reader.add_argument("--rounds", type=int, default=ROUNDS, help=f"in which all take turns ({ROUNDS})")
    reader.add_argument("--refused", action="store_true", help="what a refused request costs, beside one that is taken")
    options = reader.parse_args(arguments)
    if options.refused:
        tell_refused(options.rounds)
        return 0
    load = make_load(TRACES)
    costs: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as folder, busy_loops(options.busy):
        home = Path(folder)
        requests = home / "requests"
        write_requests(requests, load.requests)
        load.requests.clear()
        size, speed = load.span_bytes / load.spans, f"{options.rate:,.0f} a second" if options.rate else "at full speed"
        print(f"{load.spans} spans, {size:.0f} bytes each, {speed}; min / median of {options.rounds}", flush=True)
        for _ in range(options.rounds):
            for contender in contenders(options.wait):
                cost = measure(contender, load, requests, home, options.rate)
                costs.setdefault(contender.name, []).append(cost)
    _tell(costs)
    return 0


def _tell(costs: Mapping[str, Sequence[Cost]]) -> None:
    for name, runs in costs.items():
        cpu, peak, rate = [run.cpu for run in runs], [run.peak for run in runs], [run.rate for run in runs]
        print(
            f"{name:<10} {min(cpu):5.2f} / {statistics.median(cpu):5.2f} us a span   "
            f"{min(peak):4.0f} / {statistics.median(peak):4.0f} MiB peak   {runs[0].kept:6.1%} came out   "
            f"{statistics.median(rate) / 1000:4.0f} k spans/s"
        )
    for ours, theirs in ((ours, theirs) for ours in ("podtrail", "python") for theirs in costs):
        if ours in costs and theirs not in ("podtrail", "python"):
            ratios = [one.cpu / other.cpu for one, other in zip(costs[ours], costs[theirs], strict=True)]
            print(f"{ours:<8} : {theirs:<9} {min(ratios):.2f} / {statistics.median(ratios):.2f} CPU")
    for name, why in (("rotel", "is not installed"), ("collector", "is not named by BENCH_COLLECTOR")):
        if name not in costs:
            print(f"{name} {why}: no ratio to it", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
