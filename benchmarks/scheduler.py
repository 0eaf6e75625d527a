"""How many attempts a second the scheduler makes, and how long they take, on 100, 1,000 and 5,000 nodes.

Pods of three kinds come to a simulated cluster with zones, taints and images in virtual time. Counted is CPU time of
this process; the share of it that scheduling cycles have tells what the simulated API server, its watch, binding and
arrivals cost beside them. The claims: at least 300 attempts a second on 100 nodes and 100 on 1,000, all of that
included.
"""

import gc
import sys
import time
from statistics import quantiles

from podtrail_scheduler import Simulation, Workload
from podtrail_scheduler.cycles.scheduler import Scheduler

CLAIMS = {100: 300, 1_000: 100, 5_000: 0}
ATTEMPTS = 1_000
WARM = 100
"""Attempts before the count begins: the first of each kind of Pod looks at every node."""
RATE = 100


def workload(nodes: int) -> Workload:
    """Nodes of three kinds, Pods of three kinds."""
    tainted = nodes // 20
    return Workload.model_validate(
        {
            "length": f"{(ATTEMPTS + WARM) * 2 // RATE}s",
            "arrival_rate": RATE,
            "nodes": [
                {
                    "name": "node",
                    "count": nodes - tainted,
                    "zones": ["a", "b", "c"],
                    "labels": {"disk": "ssd"},
                    "allocatable": {"cpu": "64", "memory": "256Gi", "pods": 250},
                },
                {"name": "gpu", "count": tainted, "taints": [{"key": "example.com/gpu"}]},
            ],
            "pods": [
                {"name": "web", "weight": 5, "requests": {"cpu": "100m", "memory": "128Mi"}, "images": ["web"]},
                {"name": "ssd", "weight": 3, "requests": {"cpu": "1"}, "node_selector": {"disk": "ssd"}},
                {"name": "batch", "weight": 2, "requests": {"cpu": "500m", "memory": "1Gi"}, "lifetime": "20s"},
            ],
            "faults": {},
        }
    )


class Timed(Scheduler):
    """Knows how long each scheduling cycle took of the CPU."""

    cycles: list[int]

    async def schedule_one(self) -> bool:
        """Nothing is awaited in a scheduling cycle without extenders, so what passes is the cycle's own."""
        began = time.thread_time_ns()
        done = await super().schedule_one()
        if done:
            self.cycles.append(time.thread_time_ns() - began)
        return done


def measure(nodes: int) -> tuple[float, list[int]]:
    """Seconds of CPU for `ATTEMPTS` attempts, and the nanoseconds of each of their scheduling cycles."""
    simulation = Simulation(workload(nodes))
    scheduler = simulation.scheduler
    scheduler.__class__ = Timed
    assert isinstance(scheduler, Timed)
    scheduler.cycles = []
    gc.collect()
    gc.freeze()
    began, counted = 0.0, 0
    for moment in simulation.run():
        counted += moment.attempt is not None
        if counted == WARM and not began:
            began = time.process_time()
            scheduler.cycles.clear()
        if counted >= WARM + ATTEMPTS:
            break
    return time.process_time() - began, scheduler.cycles


def main() -> int:
    """Prints the figures; 1 when a claim does not hold."""
    held = True
    for nodes, wanted in CLAIMS.items():
        seconds, cycles = measure(nodes)
        rate = ATTEMPTS / seconds
        percentiles = quantiles(cycles, n=100)
        share = sum(cycles) / 1e9 / seconds
        held = held and rate >= wanted
        claim = f", claimed {wanted}: {'holds' if rate >= wanted else 'DOES NOT HOLD'}" if wanted else ""
        print(
            f"{nodes:5} nodes: {rate:6.0f} attempts/s of CPU, scheduling cycle p50 {percentiles[49] / 1e3:5.0f} us, "
            f"p99 {percentiles[98] / 1e3:5.0f} us, {share:.2f} of the whole{claim}"
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
