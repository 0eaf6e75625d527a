"""What another allocator saves `podtrail run` of CPU a span, and costs in memory: the job of `pipeline`, in turns.

BENCH_ALLOCATORS names shared objects, with colons between them, that are preloaded one at a time; the C library's own
allocator, told by podtrail what to keep, is what they are held against.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import make_load
from benchmarks.loopback.contenders import Contender
from benchmarks.loopback.processes import Ports
from benchmarks.loopback.wire import write_requests
from benchmarks.pipeline import Cost, measure

TRACES = 15_000
ROUNDS = 6
_OWN = ""


class Preloaded(NamedTuple):
    """podtrail with a shared object loaded before all others."""

    name: str
    library: str
    sends: bool = True
    samples: bool = True

    def command(self, ports: Ports, home: Path) -> list[str]:
        """Return the command."""
        plain = Contender("podtrail", sends=True, samples=True).command(ports, home)
        return ["env", f"LD_PRELOAD={self.library}", *plain] if self.library else plain


def main() -> None:
    """Print CPU and memory with each, as minimum / median, and the ratios to the first."""
    libraries = [_OWN, *filter(None, os.environ.get("BENCH_ALLOCATORS", "").split(":"))]
    load = make_load(TRACES)
    costs: dict[str, list[Cost]] = {library: [] for library in libraries}
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "requests"
        write_requests(requests, load.requests)
        load.requests.clear()
        for _ in range(ROUNDS):
            for library, runs in costs.items():
                runs.append(measure(Preloaded(Path(library).name or "own", library), load, requests, Path(folder)))
    for library, runs in costs.items():
        cpu, peak = [run.cpu for run in runs], [run.peak for run in runs]
        ratios = [one.cpu / own.cpu for one, own in zip(runs, costs[_OWN], strict=True)]
        print(
            f"{Path(library).name or 'the C library':<28} {min(cpu):5.2f} / {statistics.median(cpu):5.2f} us a span   "
            f"{min(cpu) / min(run.cpu for run in costs[_OWN]):.2f} / {statistics.median(ratios):.2f}   "
            f"{min(peak):4.0f} / {statistics.median(peak):4.0f} MiB peak"
        )
    if len(libraries) == 1:
        print("BENCH_ALLOCATORS names no other allocator: nothing to compare", file=sys.stderr)


if __name__ == "__main__":
    main()
