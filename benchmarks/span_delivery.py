"""How many of a scheduler's spans reach podtrail beside it, at 500 attempts a second, every one of them sampled.

Two processes as in a Pod: a scheduler on a simulated cluster of 1,000 nodes, held to the clock, with the exporter that
podtrail-scheduler has, and `podtrail run` with the sidecar's own configuration; what is kept goes to a sink. Each
attempt is made to take as much CPU of the scheduling thread as one takes with a real API server, so that the exporter's
thread has to contend for the interpreter. The claim: none is lost, not even when podtrail stands still for a second.
The last line has attempts as fast as they come.
"""

import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import psutil
from opentelemetry.sdk.resources import Resource
from podtrail_instrumentation import SpanCounters, TracingConfiguration, shutdown, tracer_provider
from podtrail_scheduler import Simulation

from benchmarks.loopback.contenders import podtrail_run
from benchmarks.loopback.processes import Ports, beside, free_ports, wait_for
from benchmarks.loopback.sink import take_all
from benchmarks.scheduler import workload

SIDECAR = Path(__file__).parents[1] / "docker" / "sidecar.yaml"
NODES = 1_000
ATTEMPTS = 2_000
AN_ATTEMPT = 1_500_000
"""Nanoseconds of CPU that an attempt takes at least: what `scheduler_on_kubernetes` measures for a whole one."""
PATIENCE = 10.0


class Case(NamedTuple):
    """A course of attempts."""

    name: str
    rate: int
    """Attempts a second, 0 for as fast as it goes."""
    stands_still: float = 0.0
    """Seconds for which podtrail does."""
    claimed: bool = True
    """That none is lost."""


CASES = (
    Case("500 a second", 500),
    Case("podtrail stands still for a second", 500, stands_still=1.0),
    Case("as they come", 0, claimed=False),
)


class Run(NamedTuple):
    """What a scheduler says of its run."""

    attempts: int
    seconds: float
    cpu: float
    counters: SpanCounters


def schedule(port: int, rate: int, told: Connection) -> None:
    """Schedule with all attempts traced, `rate` a second (0: as fast as it goes), once told to; tell the `Run`."""
    counters = SpanCounters()
    tracing = TracingConfiguration(endpoint=f"127.0.0.1:{port}", sampling_rate_per_million=1_000_000)
    provider = tracer_provider(tracing, Resource({"service.name": "kube-scheduler"}), counters, shutdown_timeout=5)
    moments = Simulation(workload(NODES), provider).run()
    told.send("ready")
    told.recv()
    began, cpu, attempts, worked = time.monotonic(), time.process_time(), 0, time.thread_time_ns()
    for moment in moments:
        if moment.attempt is None:
            continue
        attempts += 1
        while time.thread_time_ns() - worked < AN_ATTEMPT:
            pass
        if rate:
            time.sleep(max(0.0, began + attempts / rate - time.monotonic()))
        if attempts == ATTEMPTS:
            break
        worked = time.thread_time_ns()
    seconds = time.monotonic() - began
    shutdown(provider)
    told.send(Run(attempts, seconds, time.process_time() - cpu, counters))


def sidecar(ports: Ports) -> list[str]:
    """The command of podtrail with its own configuration, on these ports."""
    settings = {
        "receivers.otlp.protocols.grpc.endpoint": f"127.0.0.1:{ports.otlp}",
        "receivers.otlp.protocols.http.endpoint": "127.0.0.1:0",
        "extensions.health_check.endpoint": "127.0.0.1:0",
        "extensions.viewer.endpoint": "127.0.0.1:0",
        "service.telemetry.metrics.address": f"127.0.0.1:{ports.spare}",
        "exporters.otlp_grpc.endpoint": f"http://127.0.0.1:{ports.sink}",
    }
    return [*podtrail_run(SIDECAR), *(f"--set={key}={value}" for key, value in settings.items())]


def measure(case: Case) -> tuple[Run, int, float]:
    """Return what the scheduler says, how many spans podtrail took, and its seconds of CPU."""
    ports = free_ports()
    with ExitStack() as stack, tempfile.TemporaryFile() as log:
        sink = beside(stack, take_all, ports.sink)
        stack.callback(sink.send, None)
        process = subprocess.Popen(sidecar(ports), stdout=log, stderr=log)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        wait_for(ports.otlp, process)
        scheduler = beside(stack, schedule, ports.otlp, case.rate)
        before = _cpu(process.pid)
        scheduler.send("go")
        if case.stands_still:
            time.sleep(1.0)
            process.send_signal(signal.SIGSTOP)
            time.sleep(case.stands_still)
            process.send_signal(signal.SIGCONT)
        run: Run = scheduler.recv()
        return run, _taken(ports.spare), _cpu(process.pid) - before


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _taken(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("otelcol_receiver_accepted_spans"))


def verdict(case: Case, run: Run, lost: float) -> str:
    """What the run says of the claim."""
    if lost:
        return "DOES NOT HOLD"
    return (
        "holds" if run.attempts / run.seconds > 0.95 * case.rate else "not shown, the machine is too busy for the rate"
    )


def main() -> int:
    """Prints the figures; 1 when a claim does not hold."""
    held = True
    for case in CASES:
        run, taken, cpu = measure(case)
        spans = run.counters.exported + run.counters.lost.total()
        lost = 1 - taken / spans
        held = held and not (case.claimed and lost)
        claim = f", claimed none: {verdict(case, run, lost)}" if case.claimed else ""
        print(
            f"{case.name}: {run.attempts / run.seconds:.0f} attempts/s, {spans / run.seconds:.0f} spans/s, lost "
            f"{lost:.2%} {dict(+run.counters.lost)}; {run.cpu / run.seconds:.2f} of a core for the scheduler, "
            f"{cpu / run.seconds:.2f} for podtrail{claim}",
            flush=True,
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
