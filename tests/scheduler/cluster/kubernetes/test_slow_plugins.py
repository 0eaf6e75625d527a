"""A plugin of others that takes its time, on a real API server: everything but its own attempt goes on."""

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from podtrail_scheduler.framework.handle import Handle

from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

ALL = 1_000_000
DEADLINE = 120
PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/scheduler"
ELECTION = {
    "leaderElect": True,
    "resourceNamespace": "default",
    "resourceName": "scheduler",
    "retryPeriod": "500ms",
}


class Gates:
    """Where a plugin has Pods of some names wait, in its `filter` or its `pre_bind`, until the test opens."""

    def __init__(self, wait: Callable[[threading.Event], None], **points: str) -> None:
        self._points = points
        self._wait = wait
        self.reached = {name: threading.Event() for name in points}
        self.open = {name: threading.Event() for name in points}
        self.handle: Handle | None = None

    def plugin(self) -> type:
        gates = self

        class Theirs:
            name = "Theirs"

            def __init__(self, handle: Handle, _: Any) -> None:
                gates.handle = handle

            def filter(self, state: Any, pod: Any, node: Any) -> None:
                gates.stand(pod.name, "filter")

            def pre_bind(self, state: Any, pod: Any, node_name: str) -> None:
                gates.stand(pod.name, "pre_bind")

        return Theirs

    def stand(self, name: str, point: str) -> None:
        if self._points.get(name) == point:
            self.reached[name].set()
            self._wait(self.open[name])

    def sees(self, uid: str) -> bool:
        """Whether the watch has shown a Pod."""
        return self.handle is not None and self.handle.client.get_pod(uid) is not None


def blocks(gate: threading.Event) -> None:
    assert gate.wait(DEADLINE), "nobody opened the gate: the event loop stands still"


def computes(gate: threading.Event) -> None:
    end = time.monotonic() + DEADLINE
    while not gate.is_set():
        assert time.monotonic() < end, "nobody opened the gate: the event loop stands still"


def served(port: int, what: str) -> str:
    """What the service says over HTTP."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=DEADLINE) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("wait", [blocks, computes])
def test_bindings_lease_probes_and_watches_go_on_while_a_filter_takes_its_time(
    wait: Any, traced_control_plane: Any, cluster_collector: Collector, running: Any, until: Any, make_pod: Any
) -> None:
    name = wait.__name__
    first, slow, late = (f"{each}-{name}" for each in ("first", "slow", "late"))
    api, gates = traced_control_plane.api, Gates(wait, **{first: "pre_bind", slow: "filter"})
    tracing = {"endpoint": cluster_collector.endpoint, "samplingRatePerMillion": ALL}

    def create(pod: str) -> Any:
        return api.create(PODS, make_pod(pod, name))["metadata"]["uid"]

    def node(pod: str) -> Any:
        return api.get(f"{PODS}/{pod}")["spec"].get("nodeName")

    def renewed() -> Any:
        return api.get(LEASE)["spec"]["renewTime"]

    def spans(*names: str) -> list[Span]:
        roots = [
            span
            for span in list(cluster_collector.spans)
            if span.name == "SchedulePod" and attributes(span)["k8s.pod.name"] == first
        ]
        return [
            span
            for span in list(cluster_collector.spans)
            for root in roots
            if span.trace_id == root.trace_id and span.name in names
        ]

    async def test() -> int:
        async with running(
            name,
            kubeconfig=traced_control_plane.kubeconfig,
            plugins={"Theirs": gates.plugin()},
            gates="SchedulerTracing=true",
            leaderElection=ELECTION,
            tracing=tracing,
        ) as service:
            await asyncio.to_thread(create, first)
            await until(gates.reached[first].is_set)
            await asyncio.to_thread(create, slow)
            await until(gates.reached[slow].is_set)
            renewals = set[str]()

            def is_kept() -> bool:
                renewals.add(renewed())
                return len(renewals) > 2

            gates.open[first].set()
            await until(lambda: node(first))
            uid = await asyncio.to_thread(create, late)
            await until(lambda: gates.sees(uid))
            await until(is_kept)
            assert await asyncio.to_thread(served, service.port, "livez") == "ok"
            assert "scheduler_schedule_attempts_total" in await asyncio.to_thread(served, service.port, "metrics")
            assert not node(slow)
            opened = time.time_ns()
            gates.open[slow].set()
            await until(lambda: node(slow) and node(late))
            await until(lambda: len(spans("SchedulePod", BINDING)) >= 2)
        return opened

    opened = asyncio.run(test())
    [bind], [theirs] = spans("bind"), spans(BINDING)
    assert bind.start_time_unix_nano <= theirs.start_time_unix_nano
    assert theirs.end_time_unix_nano <= bind.end_time_unix_nano
    assert bind.end_time_unix_nano < opened
    [cycle] = spans("bindingCycle")
    assert cycle.end_time_unix_nano < opened


BINDING = "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding"


def test_a_plugin_that_never_returns_does_not_keep_the_service_from_ending(
    traced_control_plane: Any, running: Any, until: Any, make_pod: Any
) -> None:
    gates = Gates(blocks, stuck="filter")

    async def test() -> None:
        async with running(
            "stuck",
            kubeconfig=traced_control_plane.kubeconfig,
            plugins={"Theirs": gates.plugin()},
            leaderElection=ELECTION,
        ) as service:
            await asyncio.to_thread(traced_control_plane.api.create, PODS, make_pod("stuck", "stuck"))
            await until(gates.reached["stuck"].is_set)
            service.stop.set()
            await service.ended()
            lease = await asyncio.to_thread(traced_control_plane.api.get, LEASE)
            assert not lease["spec"].get("holderIdentity")

    asyncio.run(test())
    gates.open["stuck"].set()
