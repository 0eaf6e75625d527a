"""The same arrivals give the same decisions, byte for byte, whether sockets or a recording bring them."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from podtrail.config import Document
from podtrail.otlp import Batch
from podtrail.otlp.decisions import decision_line
from podtrail.pipeline.graph import Graph
from podtrail.pipeline.host import Host
from podtrail.pipeline.settings import read_settings
from podtrail.testing import replay
from tests.pipeline.told import Told

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
START = 1_800_000_000_000_000_000
SECOND = 1_000_000_000
POLICIES = [
    {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
    {"name": "slow", "type": "latency", "latency": {"threshold_ms": 500}},
    {"name": "few", "type": "probabilistic", "probabilistic": {"sampling_percentage": 25}},
]
CONFIG = {
    "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
    "processors": {
        "tail_sampling": {
            "decision_wait": "5s",
            "num_traces": 40,
            "decision_cache": {"sampled_cache_size": 20, "non_sampled_cache_size": 20},
            "policies": POLICIES,
        },
        "link_stitching": {},
        "batch": {"timeout": "1s"},
    },
    "exporters": {"debug": {}},
    "service": {
        "pipelines": {
            "traces": {
                "receivers": ["otlp"],
                "processors": ["tail_sampling", "link_stitching", "batch"],
                "exporters": ["debug"],
            }
        }
    },
}


class Listener:
    """Writes down every decision that leaves the pipelines, as the decisions file has it, and every span."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.spans = 0

    def observe(self, pipeline: str, batch: Batch) -> None:
        self.lines += [json.dumps(decision_line(verdict)) for verdict in batch.verdicts]
        self.spans += batch.span_count


def requests(seed: int) -> list[tuple[int, bytes]]:
    """Return arrivals: spans of 150 traces, spread over requests, some late, some failed, some slow."""
    rng = random.Random(seed)
    arrivals: list[tuple[int, bytes]] = []
    now = START
    for _ in range(120):
        now += rng.choice([0, SECOND // 10, SECOND // 2, SECOND, 3 * SECOND])
        request = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        for _ in range(rng.randint(1, 6)):
            trace = rng.randint(max(1, len(arrivals) - 10), len(arrivals) + 10)
            begun = now - rng.choice([10_000_000, SECOND])
            span = spans.add(
                trace_id=random.Random(trace).randbytes(16),
                span_id=rng.randbytes(8),
                name="SchedulePod",
                start_time_unix_nano=begun,
                end_time_unix_nano=now,
            )
            if rng.random() < 0.05:
                span.status.code = Status.STATUS_CODE_ERROR
        arrivals.append((now, request.SerializeToString()))
    return arrivals


@asynccontextmanager
async def serving(clock: Told, listener: Listener) -> AsyncIterator[tuple[Graph, str]]:
    settings = read_settings(Document.from_mapping(CONFIG))
    graph = Graph(settings, Host(seed=0), clock, observers=[listener])
    await graph.start()
    try:
        receiver: Any = graph.receivers["otlp"].component
        yield graph, receiver.endpoints["grpc"]
    finally:
        await graph.stop(10)


async def live(arrivals: list[tuple[int, bytes]]) -> Listener:
    clock, listener = Told(START), Listener()
    async with serving(clock, listener) as (graph, endpoint), grpc.aio.insecure_channel(endpoint) as channel:
        call: Any = channel.unary_unary(EXPORT)
        for now, request in arrivals:
            clock.time = now
            await call(request, timeout=30, wait_for_ready=True)
    assert all(balance.missing == balance.in_memory == balance.in_queue == 0 for balance in graph.balances())
    return listener


@pytest.mark.parametrize("seed", range(3))
def test_decisions_over_a_socket_and_in_replay_are_the_same(seed: int) -> None:
    arrivals = requests(seed)
    over_socket = asyncio.run(live(arrivals))
    replayed = replay(CONFIG, arrivals, until=arrivals[-1][0])
    assert over_socket.lines == [json.dumps(line) for line in replayed.decisions]
    assert over_socket.spans == len(replayed.exported["debug"])
    decisions = {line["decision"] for line in replayed.decisions}
    assert {"sampled", "not_sampled"} <= decisions
