"""At full load on one core, arrivals spread evenly: how late decisions are, against the time they were due.

Reading and sampling share one thread, whose CPU time is the clock, so that what others do on the machine does not
count. What the load costs is measured first; then requests arrive so often that this fills `FULL` of the core. The
sampler waits whole seconds at least: told `PACE` times the time, it decides all the while the load comes.
"""

import time
from collections.abc import Sequence
from statistics import quantiles

from benchmarks.load import make_load
from benchmarks.tail_sampling import LATENCY, MS, SECOND, SHARE, STATUS, sampler
from podtrail.component import Ledger
from podtrail.otlp import Batch, read_request
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.service.process import settle_garbage_collector

TRACES = 20_000
FULL = 0.95
PACE = 10
LIMIT_MS = 100


class Clock:
    """The thread's CPU time, `PACE` times as fast, which idle time is added to."""

    def __init__(self) -> None:
        self._idle = SECOND - PACE * time.thread_time_ns()

    def now(self) -> int:
        """Nanoseconds."""
        return PACE * time.thread_time_ns() + self._idle

    def idle_until(self, then: int) -> None:
        """Let time pass without work."""
        self._idle += max(0, then - self.now())


def run(requests: Sequence[bytes], every: float) -> tuple[list[float], int]:
    """Feed requests `every` so many nanoseconds; return how late decisions were, in ms, and the CPU of it all in ns."""
    chain = ProcessorChain([sampler(STATUS, LATENCY, SHARE, decision_wait="1s")], Ledger())
    clock, late, began = Clock(), list[float](), time.thread_time_ns()
    first = clock.now()

    def advance(now: int) -> None:
        more = True
        while more:
            more = chain.advance(now, SLICE_SPANS)
            while chain.outbox:
                batch = chain.outbox.popleft()
                left = clock.now()
                late.extend((left - verdict.decided_at) / PACE / MS for verdict in batch.verdicts)

    for number, request in enumerate(requests):
        arrives = first + round(PACE * number * every)
        while (due := chain.deadline()) is not None and due < arrives and clock.now() < arrives:
            clock.idle_until(due)
            advance(clock.now())
        clock.idle_until(arrives)
        groups = read_request(request).groups
        advance(clock.now())
        now = clock.now()
        chain.add(Batch(groups, now), now)
    while (due := chain.deadline()) is not None:
        clock.idle_until(due)
        advance(clock.now())
    return late, time.thread_time_ns() - began


def main() -> None:
    """Print how late decisions are."""
    settle_garbage_collector()
    load = make_load(TRACES)
    _, cost = run(load.requests, 0)
    every = cost / len(load.requests) / FULL
    late, took = run(load.requests, every)
    assert len(late) == load.traces
    centiles = quantiles(late, n=100)
    busy = took / (every * len(load.requests) + SECOND / PACE)
    print(
        f"{load.spans} spans, {load.spans / len(load.requests) / every * 1e9:,.0f} a second, {busy:.0%} of a core busy"
    )
    print(
        f"decisions come late by {centiles[49]:.1f} ms in the median, p99 {centiles[98]:.1f} ms, at most "
        f"{max(late):.1f} ms: {'holds' if max(late) <= LIMIT_MS else 'MISSED'} (limit {LIMIT_MS} ms)"
    )


if __name__ == "__main__":
    main()
