"""What exporters know of Pods and traces, and a store of requests: bounded in bytes, and gone with its time."""

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from podtrail_exporters.kafka.exporter import KafkaExporter
from podtrail_exporters.load_balancing.balancer import Balancer
from podtrail_exporters.load_balancing.exporter import LoadBalancingExporter

from podtrail.component import Context, Retryable
from podtrail.component.registry import find
from podtrail.config.types import HOUR, SECOND
from podtrail.durable.recent import REMEMBERED, RecentRequests, request_key
from podtrail.expiry import ExpiryTimer
from podtrail.otlp import Batch
from podtrail.pipeline.memory_budget import REPEATED_REQUESTS_BYTES
from podtrail.pod_identity import PodKeys, most_bytes_of_keys
from podtrail.transport.kafka.message import Message
from tests.exporters.conftest import make_batch
from tests.pipeline.sending.conftest import run_virtually
from tests.pod_identity.test_keys import group
from tests.pod_identity.told_directory import AT, KUBELET, SCHEDULER

MIB = 1 << 20


def pods(first: int, count: int, name: str = "web") -> Batch:
    """Return a span of each of so many Pods, each in a trace of its own."""
    made = [
        group(
            at + 1,
            {"k8s.pod.uid": f"u-{at}", "k8s.namespace.name": "ns", "k8s.pod.name": f"{name}-{at}"},
            (SCHEDULER, KUBELET)[at % 2],
            name="syncPod",
        )
        for at in range(first, first + count)
    ]
    return Batch(made, AT)


@pytest.mark.parametrize("budget", [0, 64 * MIB])
def test_what_is_known_of_pods_stays_within_its_bytes(budget: int) -> None:
    most = most_bytes_of_keys(budget)
    keys = PodKeys(most_bytes=most)
    gc.collect()
    tracemalloc.start()
    try:
        for first in range(0, 40_000, 1_000):
            keys.keys(pods(first, 1_000, "n" * 200).groups, AT + first)
            assert keys.size() <= most
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < most + MIB
    finally:
        tracemalloc.stop()
    assert keys.size() > most / 2
    assert keys.forget(2 * HOUR) is None
    assert keys.size() == 0


class Taken:
    """Takes every message."""

    def produce_as(self, properties: object) -> None:
        """Take note of nothing."""

    async def produce_all(self, messages: Sequence[Message]) -> Sequence[Any]:
        return [None for _ in messages]


@pytest.mark.parametrize(
    ("type_", "config"),
    [
        ("load_balancing", {"routing_key": "pod", "resolver": {"static": {"hostnames": ["a"]}}}),
        ("kafka", {"partition_by": "pod"}),
    ],
)
def test_an_exporter_forgets_pods_when_nothing_comes(type_: str, config: dict[str, Any]) -> None:
    factory = find("exporter", type_)
    assert factory is not None
    exporter = factory.create(factory.Config.model_validate(config), Context(id=type_))
    assert isinstance(exporter, KafkaExporter | LoadBalancingExporter)

    async def send() -> None:
        if isinstance(exporter, KafkaExporter):
            exporter.produce_within(Taken())
            await exporter.send(pods(0, 100))
            known = exporter._maker._pods
        else:
            with pytest.raises(Retryable):  # its backends are not known yet
                await exporter.send(pods(0, 100))
            known = exporter._pods
        assert known is not None
        await asyncio.sleep(3_500)
        assert known.size() > 100 * 500
        await asyncio.sleep(200)
        assert known.size() == 0

    run_virtually(send())


def test_a_balancer_forgets_finished_traces_when_nothing_comes() -> None:
    balancer = Balancer(60, 1_000)
    assert balancer.forget(0) is None
    balancer.resolve(["a", "b"], 0)
    balancer.assign(range(100), 1)
    balancer.resolve(["a", "b", "c"], 2)
    balancer.assign(range(100), 3)
    assert balancer.forget(30) is not None
    assert balancer.remembered() >= 100
    assert balancer.forget(64) is None
    assert balancer.remembered() == 0
    assert balancer.assign([1], 65)


def test_requests_are_forgotten_when_nothing_comes_and_fit_their_bound() -> None:
    recent = RecentRequests()
    batch = make_batch(1)
    gc.collect()
    tracemalloc.start()
    try:
        for at in range(66_000):
            recent.learn(request_key(f"otlp/{at}", batch), AT + at)
        assert tracemalloc.get_traced_memory()[0] < REPEATED_REQUESTS_BYTES
    finally:
        tracemalloc.stop()

    async def idle() -> None:
        loop = asyncio.get_running_loop()

        def forget() -> float | None:
            left = recent.expire(AT + int(loop.time() * SECOND))
            return None if left is None else left / SECOND

        timer = ExpiryTimer(forget)
        timer.arm()
        await asyncio.sleep(REMEMBERED / SECOND - 1)
        assert recent.pack()
        await asyncio.sleep(2)
        assert not recent.pack()
        assert timer._timer is None

    run_virtually(idle())
