"""What `linked_traces` adds to receiving and sampling the spans of a scheduler: at most 15 % of CPU.

The load are attempts of Pods that find no room several times and then go; each links to the request that created its
Pod, and shares the Pod's uid with the others. Both ways read the same requests and take turns in one process. The
policies keep slow attempts and 1 % of the others, so that most traces rest, and each kept one has its Pod's rescued.
"""

import gc
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from podtrail_processors.tail_sampling import FACTORY
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.component import Context, Metrics
from podtrail.otlp import Batch, read_request
from podtrail.service.process import settle_garbage_collector

ROUNDS = 15
LIMIT = 0.15
SLICE = 2_048
WORKLOAD = {"seed": 11, "length": "20m", "arrival_rate": 0.8}
POLICIES = [
    {"name": "slow", "type": "slow_attempt", "slow_attempt": {"threshold": "500ms"}},
    {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 1}},
]
CACHES = {"sampled_cache_size": 10_000, "non_sampled_cache_size": 10_000}

Requests = Sequence[tuple[int, bytes]]


def load() -> Requests:
    """Return the requests of a simulated scheduler and API server with their arrivals."""
    simulation = TracedSimulation(Workload.model_validate(WORKLOAD))
    return [(delivery.now, request) for delivery in simulation.run() for request in delivery.requests]


def cpu_of(requests: Requests, metrics: Metrics, **settings: object) -> tuple[float, int]:
    """Return CPU seconds from bytes to decisions, and the number of traces."""
    about: Mapping[str, Any] = {
        "decision_wait": "10s",
        "policies": POLICIES,
        "decision_cache": CACHES,
        **settings,
    }
    made = FACTORY.create(FACTORY.Config.model_validate(about), Context(id="tail_sampling", metrics=metrics))
    decided = 0
    gc.collect()
    began = time.process_time()
    for now, request in requests:
        while (due := made.deadline()) is not None and due <= now:
            decided += sum(len(batch.verdicts) for batch in made.expire(due, SLICE))
        made.add(Batch(read_request(request).groups, now), now)
    decided += sum(len(batch.verdicts) for batch in made.drain(requests[-1][0]))
    return time.process_time() - began, decided


def main() -> None:
    """Print what both ways take, and their ratio."""
    settle_garbage_collector()
    requests = load()
    ways: Mapping[str, Mapping[str, object]] = {
        "by policies alone": {},
        "linked_traces": {"linked_traces": {"keep": True}},
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, settings in ways.items():
            metrics = Metrics()
            seconds, traces = cpu_of(requests, metrics, **settings)
            took[name].append(seconds)
    for name, seconds_of in took.items():
        best, median = min(seconds_of), statistics.median(seconds_of)
        print(f"{name:<20} {best / traces * 1e6:6.2f} us a trace (median {median / traces * 1e6:.2f})")
    plain, linked = took.values()
    rescued = metrics.snapshot().get("otelcol_processor_tail_sampling_linked_traces_kept", {})
    print(f"{traces} traces; kept by links: {dict(rescued)}")
    ratio, paired = min(linked) / min(plain), statistics.median(a / b for a, b in zip(linked, plain, strict=True))
    print(f"linked decisions add {ratio - 1:.1%} (median of pairs {paired - 1:.1%}; limit {LIMIT:.0%})")


if __name__ == "__main__":
    main()
