"""What a store on disk costs: CPU a span, throughput, bytes written, and how long an acknowledgement takes.

Two jobs over OTLP/gRPC, each with nothing on disk, with a store, and with one that is synced before each answer:
passing all spans on, where the sending queue or all that arrives is kept (`sending_queue::storage`, `durable`), and
tail sampling, where podtrail keeps what arrives. With BENCH_COLLECTOR=/path/to/otelcol a Go Collector with
`file_storage` under its sending queue takes turns with it, behind `tail_sampling` and `batch` as well: there it keeps
what is decided and nothing else. The claim: at most its CPU, and at most 1.3 bytes written for each received. The store
is in the folder for temporary files: TMPDIR says on which disk.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import SPANS_A_TRACE, make_load
from benchmarks.loopback.contenders import COLLECTOR
from benchmarks.loopback.paced import send_at
from benchmarks.loopback.processes import beside, free_ports, wait_for
from benchmarks.loopback.sink import take_all
from benchmarks.loopback.stores import Stored, stored
from benchmarks.loopback.wire import write_requests
from benchmarks.pipeline import Cost, measure

TRACES = int(os.environ.get("BENCH_TRACES", "30000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
WRITTEN = 1.3
SPANS_A_REQUEST = 100
RATE = 100
"""Requests a second of `SPANS_A_REQUEST` spans while latency is measured."""
SECONDS = 15


class Waits(NamedTuple):
    """How long acknowledgements took, in milliseconds."""

    median: float
    p99: float


def acknowledged(contender: Stored, requests: Path, home: Path) -> Waits:
    """Return how long a contender's senders waited for answers at a steady rate. SystemExit when it did not answer."""
    ports = free_ports()
    with ExitStack() as stack:
        sink = beside(stack, take_all, ports.sink)
        stack.callback(sink.send, None)
        log = stack.enter_context((home / f"{contender.name}.log").open("wb"))
        process = subprocess.Popen(contender.command(ports, home), stdout=log, stderr=log)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        wait_for(ports.otlp, process)
        sender = beside(stack, send_at, requests, ports.otlp, RATE)
        sender.send("go")
        waits: list[float] | str = sender.recv()
    if isinstance(waits, str):
        raise SystemExit(f"{contender.name}: {waits}")
    centiles = statistics.quantiles(waits, n=100)
    return Waits(centiles[49] * 1e3, centiles[98] * 1e3)


def _in_turns(folder: Path) -> tuple[dict[Stored, list[Cost]], dict[Stored, list[Waits]], int]:
    """Return what each cost, how long answers took, and the bytes that each received."""
    load, few = make_load(TRACES), make_load(RATE * SECONDS * SPANS_A_REQUEST // SPANS_A_TRACE, spans_a_request=100)
    many_requests, few_requests = folder / "many", folder / "few"
    write_requests(many_requests, load.requests)
    write_requests(few_requests, few.requests)
    received = sum(map(len, load.requests))
    load.requests.clear()
    print(f"{load.spans} spans in {received / 1e6:.0f} MB; min / median of {ROUNDS}", flush=True)
    costs: dict[Stored, list[Cost]] = defaultdict(list)
    waits: dict[Stored, list[Waits]] = defaultdict(list)
    for _ in range(ROUNDS):
        for contender in stored():
            with tempfile.TemporaryDirectory(dir=folder) as home:
                costs[contender].append(measure(contender, load, many_requests, Path(home)))
            with tempfile.TemporaryDirectory(dir=folder) as home:
                waits[contender].append(acknowledged(contender, few_requests, Path(home)))
    return costs, waits, received


def _compare(costs: dict[Stored, list[Cost]]) -> None:
    for contender, runs in costs.items():
        against = [contender._replace(keeps="", fsync=False)] if contender.keeps else []
        if contender.product == "podtrail":
            against.append(contender._replace(product="collector", keeps="queue" if contender.keeps else ""))
        for other in (each for each in against if each in costs):
            ratios = [ours.cpu / theirs.cpu for ours, theirs in zip(runs, costs[other], strict=True)]
            print(f"{contender.name} : {other.name}   {min(ratios):.2f} / {statistics.median(ratios):.2f} CPU")


def main() -> None:
    """Print what each cost, and how it stands to the same job with nothing on disk and to the Collector."""
    with tempfile.TemporaryDirectory() as folder:
        costs, waits, received = _in_turns(Path(folder))
    for contender, runs in costs.items():
        cpu, rates = [run.cpu for run in runs], [run.rate for run in runs]
        written = max(run.written for run in runs) / received
        told = f"{written:.2f} bytes written a byte received" if contender.keeps else "nothing written"
        if contender.keeps and contender.product == "podtrail":
            told += f" ({'holds' if written <= WRITTEN else 'MISSED'}, limit {WRITTEN})"
        print(
            f"{contender.name:<31} {min(cpu):5.2f} / {statistics.median(cpu):5.2f} us a span   "
            f"{max(rates) / 1e3:4.0f} / {statistics.median(rates) / 1e3:4.0f} k spans/s   "
            f"{statistics.median(run.peak for run in runs):4.0f} MiB peak   acknowledged in "
            f"{statistics.median(wait.median for wait in waits[contender]):.1f} ms, p99 "
            f"{min(wait.p99 for wait in waits[contender]):.1f} / "
            f"{statistics.median(wait.p99 for wait in waits[contender]):.1f} ms   {told}"
        )
    _compare(costs)
    if not COLLECTOR:
        print("BENCH_COLLECTOR names no Collector: no ratio to it", file=sys.stderr)


if __name__ == "__main__":
    main()
