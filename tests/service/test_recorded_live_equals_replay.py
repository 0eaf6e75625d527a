"""A live run and the replay of its recording decide the same, byte for byte: several senders over gRPC and HTTP, late
and doubled spans, caches, links, policies that learn, and an end in the middle of it all."""

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.config import Document
from podtrail.otlp import Batch, Group, frame, read_request, split, write_request
from podtrail.otlp.decisions import decision_line
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.graph import Graph
from podtrail.pipeline.host import Host
from podtrail.pipeline.settings import read_settings
from podtrail.recording import Record, read_recording
from podtrail.replay.replayer import Replayer

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
START = 1_767_225_600_000_000_000
SECOND = 1_000_000_000
SENDERS = 4
WORKLOAD = {
    "length": "80s",
    "nodes": [{"name": "node", "count": 3}],
    "pods": [
        {"name": "web", "weight": 6, "lifetime": "20s"},
        {"name": "batch", "weight": 3, "requests": {"cpu": "3"}, "lifetime": "70s", "priority": -1},
        {"name": "critical", "weight": 1, "requests": {"cpu": "3"}, "priority": 9, "lifetime": "30s"},
        {"name": "huge", "requests": {"cpu": "99"}, "lifetime": "1m"},
    ],
    "faults": {
        "slow_plugins": [
            {"name": "Volumes", "extension_point": "preBind", "takes": "15s", "kinds": ["web"], "every": 7}
        ],
        "bind_refused": [{"kinds": ["web"], "every": 5, "times": 2}],
    },
}
LEARNERS = [
    {"name": "rejected", "type": "rejected_by", "rejected_by": {"plugins": ["NodeResourcesFit"], "min_nodes": 3}},
    {"name": "waited", "type": "queue_wait", "queue_wait": {"threshold": "40s"}},
    {"name": "tries", "type": "attempts", "attempts": {"min_attempts": 4}},
]
POLICIES: dict[str, list[dict[str, Any]]] = {
    "stateful": [
        {"name": "news", "type": "new_reason", "new_reason": {"forget_after": "1m"}},
        {"name": "recovered", "type": "recovered", "recovered": {"min_failures": 2}},
        {
            "name": "slowest",
            "type": "latency_quantile",
            "latency_quantile": {"quantile": 0.9, "window": "1m", "min_attempts": 20},
        },
        *LEARNERS,
    ],
    "rates": [
        {"name": "few", "type": "rate_limiting", "rate_limiting": {"spans_per_second": 5}},
        {
            "name": "target",
            "type": "target_rate",
            "target_rate": {"traces_per_second": 0.5, "key": ["k8s.pod.namespace", "scheduler.result"]},
        },
        {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 10}},
    ],
}
SAMPLERS: dict[str, dict[str, Any]] = {
    "caches": {"decision_cache": {"sampled_cache_size": 30, "non_sampled_cache_size": 30}, "num_traces": 60},
    "idle": {
        "decision_idle": "1500ms",
        "decision_wait_after_root_received": "2s",
        "decision_memory": {"kept": 1000, "not_kept": 1000},
        "rescue_late_errors": True,
        "record_reason": True,
    },
    "linked": {"linked_traces": {"keep": True, "grace_period": "20s"}, "decision_wait_after_root_received": "1s"},
    "sharded": {"num_shards": 3, "maximum_held_mib": 1, "maximum_held_trace_kib": 8, "dry_run": True},
}


@dataclass(frozen=True)
class Told(PipelineClock):
    """Pipeline time as the test tells it."""

    times: list[int] = field(default_factory=lambda: [START])

    def now(self) -> int:
        return self.times[-1]


@dataclass
class Seen:
    """What left the sampled pipeline."""

    decisions: list[str] = field(default_factory=list)
    spans: list[bytes] = field(default_factory=list)

    def observe(self, pipeline: str, batch: Batch) -> None:
        if pipeline == "traces":
            self.decisions += [json.dumps(decision_line(verdict)) for verdict in batch.verdicts]
            self.spans += [raw for group in batch.groups for raw in split(group.spans)]


def config(sampler: str, policies: str, recording: Path) -> dict[str, Any]:
    settings = {"decision_wait": "12s", "policies": POLICIES[policies], **SAMPLERS[sampler]}
    protocols = {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}
    return {
        "receivers": {"otlp": {"protocols": protocols}},
        "processors": {"tail_sampling": settings, "link_stitching": {}, "batch": {"timeout": "1s"}},
        "exporters": {"debug": {}, "recording": {"path": str(recording)}},
        "service": {
            "pipelines": {
                "traces": {
                    "receivers": ["otlp"],
                    "processors": ["tail_sampling", "link_stitching", "batch"],
                    "exporters": ["debug"],
                },
                "traces/tap": {"receivers": ["otlp"], "exporters": ["recording"]},
            }
        },
    }


def part(groups: Sequence[Group], rng: random.Random) -> Iterator[list[Group]]:
    """Yield the groups for several senders: some traces are torn apart."""
    shares: list[list[Group]] = [[] for _ in range(SENDERS)]
    for group in groups:
        spans = split(group.spans)
        cut = rng.randrange(len(spans) + 1) if rng.random() < 0.3 else len(spans)
        for piece in (spans[:cut], spans[cut:]):
            if piece:
                rng.choice(shares).append(group._replace(spans=frame(piece), span_count=len(piece)))
    yield from (share for share in shares if share)


def steps(seed: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield times, and the requests that different senders send at about that time."""
    rng = random.Random(seed)
    late: list[tuple[int, list[Group]]] = []
    simulation = TracedSimulation(Workload.model_validate({**WORKLOAD, "seed": seed}), start=START)
    for delivery in simulation.run():
        groups = [group for request in delivery.requests for group in read_request(request).groups]
        requests: list[list[Group]] = [each for due, each in late if due <= delivery.now]
        late = [(due, each) for due, each in late if due > delivery.now]
        for share in part(groups, rng):
            if rng.random() < 0.1:
                late.append((delivery.now + rng.choice([3, 14, 40]) * SECOND, share))
            else:
                requests.append(share)
                if rng.random() < 0.05:
                    late.append((delivery.now + SECOND, share))
        if requests:
            yield delivery.now, [write_request(each) for each in requests]


async def live(settings: dict[str, Any], seed: int) -> tuple[Seen, int]:
    """Run live until the traffic ends, with much undecided; return what was seen and when it ended."""
    clock, seen = Told(), Seen()
    graph = Graph(read_settings(Document.from_mapping(settings)), Host(seed=0), clock, observers=[seen])
    await graph.start()
    receiver: Any = graph.receivers["otlp"].component
    async with AsyncExitStack() as stack:
        stack.push_async_callback(graph.stop, 10)
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(receiver.endpoints["grpc"]))
        export: Any = channel.unary_unary(EXPORT)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        url = f"http://{receiver.endpoints['http']}/v1/traces"

        async def post(request: bytes) -> None:
            headers = {"content-type": "application/x-protobuf"}
            async with session.post(url, data=request, headers=headers) as response:
                assert response.status == 200

        for now, requests in steps(seed):
            clock.times.append(now)
            ways = [export(r, timeout=120, wait_for_ready=True) if at % 2 else post(r) for at, r in enumerate(requests)]
            await asyncio.gather(*ways)
    driver = graph.driver("traces")
    assert driver is not None
    assert all(balance.missing == balance.in_memory == balance.in_queue == 0 for balance in graph.balances())
    return seen, max(clock.now(), driver.reached)


def replayed(settings: dict[str, Any], recording: Path, until: int) -> Seen:
    seen = Seen()
    replayer = Replayer(read_settings(Document.from_mapping(settings)), seen.observe)
    for record in read_recording(recording):
        assert isinstance(record, Record)
        replayer.add(record.arrival, record.intake)
    replayer.finish(until)
    return seen


@pytest.mark.parametrize(
    ("sampler", "policies"), [*zip(SAMPLERS, ["stateful", "rates", "stateful", "rates"], strict=True)]
)
def test_the_replay_of_a_live_run_is_that_run(sampler: str, policies: str, tmp_path: Path) -> None:
    recording = tmp_path / "tap.otlp"
    settings = config(sampler, policies, recording)
    over_sockets, end = asyncio.run(live(settings, seed=len(sampler) + len(policies)))
    again = replayed(settings, recording, end)
    assert over_sockets.decisions == again.decisions
    assert over_sockets.spans == again.spans
    decided = {json.loads(line)["decision"] for line in again.decisions}
    assert {"sampled", "not_sampled"} <= decided
