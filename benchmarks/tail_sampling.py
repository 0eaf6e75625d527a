"""What tail sampling costs a span in CPU and in memory while it is held, and how long a pause it makes.

CPU is set against reading the same requests (`read_request`), which any pipeline must do; the policies are status,
latency and a share, and the main job's, with decision caches; then the usual three again with the same three in the
shadow, and with reasons recorded. Late spans are the same requests once more, when all is decided. Memory is what the
process grows by while the load is held.
"""

import gc
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.processor import TailSampling

from benchmarks.load import SLOW_MS, SPANS_A_TRACE, Load, make_load
from podtrail.component import Context
from podtrail.otlp import Batch, Group, read_request
from podtrail.otlp.native import IS_LOADED, RUNS, in_python
from podtrail.pipeline.chain import SLICE_SPANS
from podtrail.service.process import settle_garbage_collector

TRACES = 6_000
HELD_TRACES = 28_572
TOGETHER = 200_000
ROUNDS = 5
MS = 1_000_000
SECOND = 1_000 * MS
_PAGE = 4096

Policy = Mapping[str, object]

STATUS: Policy = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
LATENCY: Policy = {"name": "slow", "type": "latency", "latency": {"threshold_ms": SLOW_MS}}
RESULT: Policy = {
    "name": "failed",
    "type": "scheduling_result",
    "scheduling_result": {"results": ["Unschedulable", "Error"]},
}
SLOW: Policy = {"name": "slow", "type": "slow_attempt", "slow_attempt": {"threshold": f"{SLOW_MS}ms"}}
SHARE: Policy = {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 5}}


class Cost(Protocol):
    """Tells CPU seconds and kept spans of requests by policies."""

    def __call__(self, requests: Sequence[Sequence[Group]], *policies: object, **settings: object) -> tuple[float, int]:
        """Return both."""


def sampler(*policies: object, **settings: object) -> TailSampling:
    """Return a sampler of these policies."""
    config = FACTORY.Config.model_validate({"num_traces": 1_000_000, "policies": policies} | settings)
    made = FACTORY.create(config, Context(id="tail_sampling"))
    assert isinstance(made, TailSampling)
    return made


def cpu_of(requests: Sequence[Sequence[Group]], *policies: object, **settings: object) -> tuple[float, int]:
    """Return CPU seconds from filing to deciding all of it, and the spans kept; a trace waits for 50 requests."""
    made = sampler(*policies, decision_wait="1s", **settings)
    kept = now = 0
    began = time.process_time()
    for groups in requests:
        now += 20 * MS
        while (due := made.deadline()) is not None and due <= now:
            kept += sum(batch.span_count for batch in made.expire(due, SLICE_SPANS))
        made.add(Batch(groups, now), now)
    kept += sum(batch.span_count for batch in made.drain(now))
    return time.process_time() - began, kept


def late_cpu_of(requests: Sequence[Sequence[Group]], *policies: object, **settings: object) -> tuple[float, int]:
    """Return CPU seconds that it takes to hear all of it again once it is decided, and the late spans that are kept."""
    made = sampler(*policies, decision_wait="1s", **settings)
    for groups in requests:
        made.add(Batch(groups, SECOND), SECOND)
    while (due := made.deadline()) is not None and due <= 2 * SECOND:
        made.expire(due, SLICE_SPANS)
    began = time.process_time()
    kept = 0
    for groups in requests:
        kept += sum(batch.span_count for batch in made.add(Batch(groups, 3 * SECOND), 3 * SECOND).out)
    return time.process_time() - began, kept


def resident() -> int:
    """Return the process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def held_bytes_a_span(load: Load) -> float:
    """Return by how much memory grows for each span when the whole load is held."""
    made = sampler(STATUS, LATENCY, SHARE)
    gc.collect()
    before = resident()
    for request in load.requests:
        made.add(Batch(read_request(request).groups, SECOND), SECOND)
    gc.collect()
    return (resident() - before) / made.held()


def longest_pause(load: Load) -> float:
    """Return the most CPU seconds that one `expire` takes when many small traces fall due at the same moment."""
    made = sampler(STATUS, LATENCY, SHARE)
    groups = read_request(load.requests[0]).groups
    for first in range(0, TOGETHER, len(groups)):
        renamed = [group._replace(trace_id=(first + at).to_bytes(16, "big")) for at, group in enumerate(groups)]
        made.add(Batch(renamed, SECOND), SECOND)
    longest = 0.0
    while (due := made.deadline()) is not None:
        began = time.thread_time()
        made.expire(due, SLICE_SPANS)
        longest = max(longest, time.thread_time() - began)
    return longest


def main() -> None:
    """Print CPU, memory and pause."""
    settle_garbage_collector()
    load = make_load(TRACES)
    reading = min(_timed_read(load) for _ in range(ROUNDS))
    requests = [read_request(request).groups for request in load.requests]
    micro = 1e6 / load.spans
    print(f"{load.spans} spans, {SPANS_A_TRACE} a trace, {load.span_bytes / load.spans:.0f} bytes each")
    print(f"native: {RUNS}")
    print(f"{'read_request (the floor)':<40} {reading * micro:6.3f} us a span   1.00")
    if IS_LOADED:
        with in_python():
            slowly = min(_timed_read(load) for _ in range(ROUNDS))
        print(f"{'  in Python':<40} {slowly * micro:6.3f} us a span   native {reading / slowly:.2f} of it")
    caches: dict[str, object] = {"decision_cache": {"sampled_cache_size": 10_000, "non_sampled_cache_size": 10_000}}
    usual: list[Policy] = [STATUS, LATENCY, SHARE]
    cases: list[tuple[str, Cost, list[Policy], dict[str, object]]] = [
        ("share alone", cpu_of, [SHARE], {}),
        ("status alone", cpu_of, [STATUS], {}),
        ("status, latency, share", cpu_of, usual, {}),
        ("  the same three in the shadow, too", cpu_of, usual, {"shadow_policies": usual}),
        ("  with record_reason", cpu_of, usual, {"record_reason": True}),
        ("  late spans", late_cpu_of, usual, {}),
        ("scheduling_result, slow_attempt, share", cpu_of, [RESULT, SLOW, SHARE], {}),
    ]
    for name, cost, policies, settings in cases:
        took, kept = min(cost(requests, *policies, **caches, **settings) for _ in range(ROUNDS))
        print(f"{name:<40} {took * micro:6.3f} us a span   {took / reading:.2f}   {kept / load.spans:6.1%} kept")
        if IS_LOADED:
            with in_python():
                slowly, same = min(cost(requests, *policies, **caches, **settings) for _ in range(ROUNDS))
            assert same == kept, "Python keeps others"
            print(f"{'  in Python':<40} {slowly * micro:6.3f} us a span   native {took / slowly:.2f} of it")
    del requests
    held = make_load(HELD_TRACES, seed=2)
    each, raw = held_bytes_a_span(held), held.span_bytes / held.spans
    print(
        f"{held.spans} spans held: {each:.0f} bytes a span, raw + {each - raw:.0f} ({each / raw:.2f} of the raw bytes)"
    )
    print(f"{TOGETHER} traces due together: the longest slice takes {longest_pause(load) * 1e3:.1f} ms (limit 20)")


def _timed_read(load: Load) -> float:
    began = time.process_time()
    for request in load.requests:
        read_request(request)
    return time.process_time() - began


if __name__ == "__main__":
    main()
