"""What a span costs that comes from a partition, beside one that a receiver of requests hands over, in process.

Both ways have the same sampler, queue and exporter and are handed the same batches, in one partition or many. With
partitions all that may be committed is asked for every 100 records; checkpoints are counted by themselves. The ways
take turns; minimum and median of the CPU are printed.
"""

import asyncio
import statistics
import time
import zlib
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.load import Load, make_load
from benchmarks.tail_sampling import LATENCY, SHARE, STATUS
from podtrail.component import Partition, PartitionRecord
from podtrail.otlp import Batch, Group, read_request
from podtrail.pipeline.fan_out import FanOutConsumer
from podtrail.pipeline.settings import Settings
from podtrail.service.process import settle_garbage_collector
from tests.partitioned.consumers import Consumer, RememberingExporter
from tests.pipeline.configurations import Tried

TRACES = 2_000
ROUNDS = 5
COMMIT_EVERY = 100
"""Records; at 512 spans each what is read in a third of a second."""
_AT_ONCE = 16
_STEP = 20_000_000
_BEGIN = 1_800_000_000_000_000_000

Requests = Sequence[Sequence[Group]]


class _Sink(RememberingExporter):
    """Takes everything and keeps nothing."""

    async def send(self, batch: Batch) -> int:
        return batch.span_count * 0


def _settings() -> Settings:
    policies = [STATUS, LATENCY, SHARE]
    caches = {"sampled_cache_size": 10_000, "non_sampled_cache_size": 10_000}
    sampler = {"decision_wait": "1s", "num_traces": 1_000_000, "policies": policies, "decision_cache": caches}
    return Tried({"tail_sampling": sampler}).settings()


async def _plainly(requests: Requests) -> float:
    async with Consumer(_settings(), make_exporter=_Sink) as process:
        consume = FanOutConsumer(process.drivers, process.clock)
        process.clock.time = _BEGIN
        began = time.process_time()
        for groups in requests:
            process.clock.time += _STEP
            await consume(Batch(groups, process.clock.time))
            await asyncio.sleep(0)
        for queue in process.queues.values():
            await queue.drain(10.0)
        return time.process_time() - began


async def _by_partitions(requests: Requests, partitions: int, checkpoints: list[float]) -> float:
    async with Consumer(_settings(), make_exporter=_Sink) as process:
        owned = [await process.open(number) for number in range(partitions)]
        records = [PartitionRecord(at, _BEGIN + at * _STEP, Batch(groups, 0)) for at, groups in enumerate(requests)]
        mine: list[float] = []
        began = time.process_time()
        size = _AT_ONCE * partitions
        for turn, first in enumerate(range(0, len(records), size)):
            for number, partition in enumerate(owned):
                await partition.take(records[first + number : first + size : partitions])
                if partition.checkpoint_due():
                    mine.append(_checkpoint(partition))
                if not turn % max(1, COMMIT_EVERY // size) and partition.position is not None:
                    partition.commit()
            await asyncio.sleep(0)
        for partition in owned:
            await partition.delivered()
        checkpoints += mine
        return time.process_time() - began - sum(mine)


def _checkpoint(partition: Partition) -> float:
    began = time.process_time()
    assert partition.checkpoint() is not None
    partition.checkpointed("0.0.0.1.0.ffffffff")
    return time.process_time() - began


def _by_trace(requests: Requests, partitions: int) -> Requests:
    """Return as many batches of about the same size, each with the traces of one partition, which take turns."""
    found: list[list[Group]] = []
    for first in range(0, len(requests), partitions):
        lines: list[list[Group]] = [[] for _ in range(partitions)]
        for groups in requests[first : first + partitions]:
            for group in groups:
                lines[zlib.crc32(group.trace_id) % partitions].append(group)
        found += lines
    return found


def _ways(requests: Requests, checkpoints: list[float]) -> dict[str, Callable[[], Awaitable[float]]]:
    return {
        "plainly": lambda: _plainly(requests),
        "one partition": lambda: _by_partitions(requests, 1, checkpoints),
        "ten partitions": lambda: _by_partitions(_by_trace(requests, 10), 10, []),
    }


async def _measured(load: Load, checkpoints: list[float]) -> dict[str, list[float]]:
    requests = [read_request(request).groups for request in load.requests]
    ways = _ways(requests, checkpoints)
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            took[name].append(await way())
    return took


def main() -> None:
    """Print the CPU of each way, and its ratio to the plain one."""
    settle_garbage_collector()
    load = make_load(TRACES)
    checkpoints: list[float] = []
    took = asyncio.run(_measured(load, checkpoints))
    micro, (least, median) = 1e6 / load.spans, _of(took["plainly"])
    print(f"{load.spans} spans in {len(load.requests)} batches, read before; least / median of {ROUNDS}")
    for name, each in took.items():
        a, b = _of(each)
        print(f"{name:<16} {a * micro:6.3f} / {b * micro:6.3f} us a span   {a / least:.2f} / {b / median:.2f}")
    if checkpoints:
        print(f"a checkpoint of the one partition, not counted above: {min(checkpoints) * 1e3:.1f} ms")


def _of(took: Sequence[float]) -> tuple[float, float]:
    return min(took), statistics.median(took)
