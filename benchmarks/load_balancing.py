"""What `load_balancing` among four backends costs a span over `otlp_grpc` to one, beside the Go Collector's exporter.

Spans come in requests of 512 as fast as they are taken, and in small ones (of 16) at a steady rate, which is where a
request parted among backends costs most. Every span has to come out once. BENCH_COLLECTOR names a Go Collector with
`loadbalancing`, measured by the same ways in turns.
"""

import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.load import make_load
from benchmarks.loopback.contenders import COLLECTOR
from benchmarks.loopback.paced import send_at
from benchmarks.loopback.processes import beside, cpu_of
from benchmarks.loopback.sender import send_all
from benchmarks.loopback.sink import BACKENDS
from benchmarks.loopback.standing import all_out, complain, is_whole, standing
from benchmarks.loopback.stations import Station
from benchmarks.loopback.wire import write_requests

TRACES = int(os.environ.get("BENCH_TRACES", "6000"))
PACED_TRACES = int(os.environ.get("BENCH_PACED_TRACES", "200"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SMALL = 16
"""Spans of a small request."""
RATE = 20.0
"""Small requests a second."""
LIMIT = 1.5
"""What a span may cost over `otlp_grpc`, in small requests, too."""


class _Bench:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loads = {"large": make_load(TRACES), "small": make_load(PACED_TRACES, spans_a_request=SMALL, seed=2)}
        for name, load in self._loads.items():
            write_requests(folder / name, load.requests)

    def cost(self, product: str, form: str, backends: int) -> float:
        """Return microseconds of CPU a span. SystemExit when what came out is not what went in."""
        station = Station(f"{product}-{form}-{backends}", product, backends=backends, batches=form == "large")
        load, home = self._loads[form], Path(tempfile.mkdtemp(dir=self._folder))
        with standing([[station]], home) as way, ExitStack() as stack:
            sender = (
                beside(stack, send_all, self._folder / form, way.otlp)
                if form == "large"
                else beside(stack, send_at, self._folder / form, way.otlp, RATE)
            )
            before = cpu_of(way.pids[0][0])
            sender.send("go")
            if isinstance(wrong := sender.recv(), str):
                complain([station], wrong, home)
            came = all_out(way.sink, load, samples=False)
            cpu = cpu_of(way.pids[0][0]) - before
        if not is_whole(came, load, samples=False):
            complain([station], f"{load.spans} spans went in, what came out is wrong: {came}", home)
        return cpu / load.spans * 1e6


def _shown(values: Sequence[float]) -> str:
    return f"{min(values):6.2f} / {statistics.median(values):6.2f}"


def main() -> None:
    """Print what a span costs by each way, in microseconds of CPU: minimum / median."""
    costs: defaultdict[tuple[str, str, int], list[float]] = defaultdict(list)
    products = ("podtrail", "collector") if COLLECTOR else ("podtrail",)
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder))
        for _ in range(ROUNDS):
            for product in products:
                for form in ("large", "small"):
                    for backends in (0, BACKENDS):
                        costs[product, form, backends].append(bench.cost(product, form, backends))
    print("us of CPU a span            otlp_grpc          load_balancing     ratio")
    for product in products:
        for form in ("large", "small"):
            plain, balanced = costs[product, form, 0], costs[product, form, BACKENDS]
            ratio = min(balanced) / min(plain)
            verdict = "" if product != "podtrail" else "  holds" if ratio <= LIMIT else f"  MISSED, limit {LIMIT}"
            print(f"{product:<10} {form:<8} {_shown(plain):>18} {_shown(balanced):>18} {ratio:9.2f}{verdict}")


if __name__ == "__main__":
    main()
