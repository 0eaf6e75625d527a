"""What `linked_traces` adds to receiving and sampling a busy scheduler's spans: at most 15 % of CPU.

The load is the one of the other benchmarks, but that four traces each are attempts of one Pod: they share its uid, and
each links to the one before. Both ways read the same requests and take turns in one process. The policies keep slow
attempts and 1 % of the others, so that most traces rest, and for each kept one those of its Pod are rescued.
"""

import gc
import statistics
import time
from collections.abc import Mapping, Sequence

from podtrail_processors.link_stitching.config import Config as StitchingConfig
from podtrail_processors.link_stitching.processor import LinkStitching
from podtrail_processors.tail_sampling import FACTORY

from benchmarks.load import SLOW_MS, make_load
from podtrail.component import Context, Metrics
from podtrail.otlp import (
    ROOT_NAME,
    Batch,
    Group,
    Link,
    append_attributes,
    append_links,
    frame,
    read_request,
    split,
    write_request,
)
from podtrail.service.process import settle_allocator, settle_garbage_collector

ROUNDS = 9
SLICE = 2_048
TRACES = 3_000
ATTEMPTS_A_POD = 4
MS = 1_000_000
SECOND = 1_000 * MS
POLICIES = [
    {"name": "slow", "type": "slow_attempt", "slow_attempt": {"threshold": f"{SLOW_MS}ms"}},
    {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 1}},
]
LINKED = {"linked_traces": {"keep": True, "grace_period": "2s"}}
CACHES = {"sampled_cache_size": 10_000, "non_sampled_cache_size": 10_000}

Requests = Sequence[tuple[int, bytes]]


def load() -> Requests:
    """Return requests, 20 ms after one another, in which each attempt links to the one before and names its Pod."""
    attempts: dict[bytes, int] = {}
    by_number: list[bytes] = []

    def tied(group: Group) -> Group:
        if group.trace_id not in attempts:
            attempts[group.trace_id] = len(attempts)
            by_number.append(group.trace_id)
        number = attempts[group.trace_id]
        if ROOT_NAME.encode() not in group.spans:
            return group
        before = [by_number[number - 1]] if number % ATTEMPTS_A_POD else []
        uid = f"00000000-0000-4000-8000-{number // ATTEMPTS_A_POD:012}"
        spans = [
            append_links(append_attributes(raw, {"k8s.pod.uid": uid}), [Link(one, b"s" * 8, {}) for one in before])
            if ROOT_NAME.encode() in raw
            else raw
            for raw in split(group.spans)
        ]
        return group._replace(spans=frame(spans))

    requests = make_load(TRACES).requests
    return [
        (20 * MS * at, write_request([tied(group) for group in read_request(request).groups]))
        for at, request in enumerate(requests, 1)
    ]


class Pipeline:
    """The processors of a scheduler's sidecar, one behind the other, driven as the pipeline does."""

    def __init__(self, metrics: Metrics, settings: Mapping[str, object], *, stitches: bool) -> None:
        about = {"decision_wait": "1s", "policies": POLICIES, "decision_cache": CACHES, **settings}
        self.sampler = FACTORY.create(FACTORY.Config.model_validate(about), Context("tail_sampling", metrics=metrics))
        stitching = LinkStitching(StitchingConfig(reorder_wait=SECOND), Context("link_stitching", metrics=metrics))
        self.stitching = stitching if stitches else None
        self.decided = 0

    def advance(self, now: int) -> None:
        """Do what is due."""
        while (due := self.sampler.deadline()) is not None and due <= now:
            self._pass_on(self.sampler.expire(due, SLICE), due)
        while self.stitching and (due := self.stitching.deadline()) is not None and due <= now:
            self._leave(self.stitching.expire(due, SLICE))

    def add(self, request: bytes, now: int) -> None:
        """Take a request's bytes."""
        self._pass_on(self.sampler.add(Batch(read_request(request).groups, now), now).out, now)

    def stop(self, now: int) -> None:
        """Let go of everything."""
        self._pass_on(self.sampler.drain(now), now)
        if self.stitching:
            self._leave(self.stitching.drain(now))

    def _pass_on(self, batches: Sequence[Batch], now: int) -> None:
        for batch in batches:
            self.decided += len(batch.verdicts)
            self._leave(self.stitching.add(batch, now).out if self.stitching else [batch])

    def _leave(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            write_request(batch.groups)


def cpu_of(requests: Requests, metrics: Metrics, settings: Mapping[str, object], *, stitches: bool) -> float:
    """Return CPU seconds from bytes to bytes."""
    pipeline = Pipeline(metrics, settings, stitches=stitches)
    gc.collect()
    began = time.process_time()
    for now, request in requests:
        pipeline.advance(now)
        pipeline.add(request, now)
    pipeline.stop(requests[-1][0])
    took = time.process_time() - began
    assert pipeline.decided >= TRACES, "every trace has its verdict"
    return took


def main() -> None:
    """Print what both ways take with stitching behind them and without, and their ratios."""
    settle_allocator()
    settle_garbage_collector()
    requests = load()
    for stitches, what in ((False, "reading, sampling, writing"), (True, "with link_stitching")):
        plain: list[float] = []
        linked: list[float] = []
        for _ in range(ROUNDS):
            metrics = Metrics()
            plain.append(cpu_of(requests, Metrics(), {}, stitches=stitches))
            linked.append(cpu_of(requests, metrics, LINKED, stitches=stitches))
        kept = metrics.snapshot()["otelcol_processor_tail_sampling_linked_traces_kept"]
        each = [min(took) / TRACES * 1e6 for took in (plain, linked)]
        paired = statistics.median(one / other for one, other in zip(linked, plain, strict=True))
        print(f"{what:<28} {each[0]:6.1f} us a trace, with linked_traces {each[1]:6.1f}: {each[1] / each[0] - 1:+.1%}")
        print(f"{'':<28} median of pairs {paired - 1:+.1%} (limit +15%); kept by links {sum(kept.values()):.0f}")


if __name__ == "__main__":
    main()
