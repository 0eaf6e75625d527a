"""The integration and e2e tests that KEP-5927 lists, on a real API server; its unit tests are in tests/scheduler.

| the KEP's words | test |
|---|---|
| scheduling a Pod produces trace spans with the expected hierarchy | `test_scheduling_a_pod_produces_trace_spans_...` |
| trace context from Pod annotations results in a Span Link | `test_trace_context_from_pod_annotations_results_...` |
| re-injects its own trace context into the Pod's annotations | `test_the_scheduler_re_injects_...` |
| spans are exported with the correct structure and attributes | `test_spans_are_exported_with_...` |
| OTLP endpoint is unreachable, backend rejects data | `test_an_exporter_that_fails_hangs_or_is_absent_...` |

The rows of its table of gate and rate are in tests/scheduler/test_kep_5927.py; that the flags get there is in
test_gates.py. What the API server records of the binding is in test_trace_context.py.
"""

import asyncio
import itertools
import re
import socket
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from opentelemetry.trace import get_current_span
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Pod
from prometheus_client.parser import text_string_to_metric_families

from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

KEY = "tracing.k8s.io/traceparent"
CREATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
GATES = "SchedulerTracing=true,AsyncTraceContextPropagation=true"
ALL = 1_000_000

_numbers = itertools.count(1)


@dataclass
class Outcome:
    """A scheduled Pod, what became of it, and what a plugin saw while it was scheduled."""

    pod: dict[str, Any] = field(default_factory=dict)
    attempts: list[AttemptRecord] = field(default_factory=list)
    valid: list[bool] = field(default_factory=list)
    recording: list[bool] = field(default_factory=list)

    @property
    def traceparent(self) -> str:
        return str(self.pod["metadata"]["annotations"][KEY])

    def plugin(self) -> type:
        """A Filter plugin that notes which span is current when it is called."""
        outcome = self

        class Watcher:
            name = "Watcher"

            def __init__(self, *_: object) -> None:
                """Needs nothing."""

            def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
                span = get_current_span()
                outcome.valid.append(span.get_span_context().is_valid)
                outcome.recording.append(span.is_recording())

        return Watcher


Schedule = Callable[..., Coroutine[Any, Any, Outcome]]


@pytest.fixture(scope="module")
def schedule(control_plane: Any, running: Any, until: Any, make_pod: Any) -> Schedule:
    """Schedules one Pod, created with a trace context; ends when it is bound and `then` is true."""

    async def run(gates: str = GATES, then: Callable[[], Any] = lambda: True, **fields: Any) -> Outcome:
        api, outcome = control_plane.api, Outcome()
        name = await asyncio.to_thread(api.namespace, f"kep-5927-{next(_numbers)}")
        pods = f"/api/v1/namespaces/{name}/pods"
        for number in range(2):
            await asyncio.to_thread(api.node, f"{name}-{number}", labels={"for": name})
        wanted = make_pod("web", name, nodeSelector={"for": name})
        wanted["metadata"]["annotations"] = {KEY: CREATION}
        async with running(name, gates=gates, plugins={"Watcher": outcome.plugin()}, **fields) as service:
            await asyncio.to_thread(api.create, pods, wanted)
            outcome.pod = await until(lambda: api.get(f"{pods}/web"), lambda pod: "nodeName" in pod["spec"])
            await until(lambda: len(service.attempts))
            await until(then)
        outcome.attempts = service.attempts
        return outcome

    return run


@pytest.fixture(scope="module")
def sampled(schedule: Schedule, collector: Collector) -> Outcome:
    """A Pod that was scheduled with everything sampled; its spans are at the collector."""
    tracing = {"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}

    def arrived() -> bool:
        return any(span.name == "SchedulePod" for span in collector.spans)

    return asyncio.run(schedule(then=arrived, tracing=tracing))


@dataclass
class Endpoint:
    """Something that accepts connections, and never says anything."""

    address: str = ""
    connections: int = 0


@asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    found, writers = Endpoint(), []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        writers.append(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    found.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        for writer in writers:
            writer.close()


# Integration tests, and the e2e test.


@pytest.mark.usefixtures("sampled")
def test_scheduling_a_pod_produces_trace_spans_with_the_expected_hierarchy(collector: Collector) -> None:
    cycles = collector.outline()["SchedulePod"]
    assert isinstance(cycles, dict)
    assert list(cycles) == ["schedulingCycle", "bindingCycle"]
    assert list(cycles["schedulingCycle"]) == ["preFilter", "filter", "preScore", "score", "reserve", "permit"]
    assert "plugin: NodeResourcesFit" in cycles["schedulingCycle"]["filter"]
    assert "plugin: NodeResourcesBalancedAllocation" in cycles["schedulingCycle"]["score"]
    assert list(cycles["bindingCycle"]) == ["preBind", "bind", "postBind"]
    assert cycles["bindingCycle"]["bind"] == {"plugin: DefaultBinder": {}}


@pytest.mark.usefixtures("sampled")
def test_trace_context_from_pod_annotations_results_in_a_span_link_to_the_api_servers_trace(
    collector: Collector,
) -> None:
    root = collector.named("SchedulePod")
    [link] = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CREATION[3:35], CREATION[36:52])
    assert root.trace_id.hex() != CREATION[3:35]
    assert root.parent_span_id == b""


def test_the_scheduler_re_injects_its_own_trace_context_into_the_pods_annotations_after_binding(
    sampled: Outcome, collector: Collector
) -> None:
    root = collector.named("SchedulePod")
    assert sampled.traceparent == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"


def test_spans_are_exported_with_the_correct_structure_and_attributes(sampled: Outcome, collector: Collector) -> None:
    told = attributes(collector.named("SchedulePod"))
    wait = told.pop("scheduler.queue_wait_ms")
    assert isinstance(wait, int)
    assert re.fullmatch(r"[0-9a-f]{12}", str(told.pop("scheduler.config.generation")))  # of ours, beside the KEP's
    pod = sampled.pod
    namespace = pod["metadata"]["namespace"]
    assert told == {
        "k8s.pod.name": "web",
        "k8s.pod.namespace": namespace,
        "k8s.namespace.name": namespace,
        "k8s.pod.uid": pod["metadata"]["uid"],
        "scheduler.profile": namespace,
        "scheduler.attempts": 1,
        "scheduler.result": "Success",
        "scheduler.selected_node": pod["spec"]["nodeName"],
    }
    bind = attributes(collector.named("bind"))
    assert bind["scheduler.selected_node"] == pod["spec"]["nodeName"]
    fit = attributes(next(span for span in collector.spans if span.name == "plugin: NodeResourcesFit"))
    assert fit["scheduler.plugin.name"] == "NodeResourcesFit"


@pytest.mark.usefixtures("sampled")
def test_the_resource_says_which_scheduler_where(collector: Collector) -> None:
    told = collector.resources[0]
    assert told.keys() == {"service.name", "service.version", "service.instance.id", "host.name"}
    assert told["service.name"] == "podtrail-scheduler"
    assert told["host.name"] == socket.gethostname()
    assert told["service.instance.id"].startswith(f"{socket.gethostname()}_")


def test_the_instance_is_who_holds_the_lease_and_the_environment_goes_before_all(
    schedule: Schedule, control_plane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=node-7,k8s.cluster.name=a%20b")
    backend, lease = Collector(), f"kep-5927-{next(_numbers)}"
    election = {"leaderElect": True, "resourceName": lease, "resourceNamespace": "kube-system"}
    tracing = {"endpoint": backend.endpoint, "samplingRatePerMillion": ALL}
    held = []

    def arrived() -> bool:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}"
        held.append(control_plane.api.get(path)["spec"]["holderIdentity"])
        return bool(backend.resources)

    try:
        asyncio.run(schedule(then=arrived, tracing=tracing, leaderElection=election))
    finally:
        backend.stop()
    told = backend.resources[0]
    assert (told["host.name"], told["k8s.cluster.name"]) == ("node-7", "a b")
    assert told["service.instance.id"] == held[0]


@pytest.mark.usefixtures("collector")
def test_what_a_plugin_sees_is_recorded(sampled: Outcome) -> None:
    assert sampled.recording
    assert all(sampled.recording)


# What becomes of the spans is not scheduling's business.


@pytest.fixture
def rejecting() -> Iterator[str]:
    """The address of a backend that rejects all data."""

    class Rejects(grpc.GenericRpcHandler):
        def service(self, _: grpc.HandlerCallDetails) -> Any:
            def refuse(_: bytes, context: grpc.ServicerContext) -> bytes:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "invalid API key")
                raise AssertionError("abort raises")

            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Rejects()])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield address
    server.stop(None).wait()


def failed_exports(port: int) -> float:
    """How many spans that service has failed to export, by its metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == "scheduler_tracing_spans_exported_total" and sample.labels["result"] == "error"
        )


async def test_an_exporter_that_fails_hangs_or_is_absent_does_not_touch_scheduling(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, rejecting: str
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})
    names = ("failing", "hanging", "absent")

    def all_bound(listed: Any) -> bool:
        return all("nodeName" in pod["spec"] for pod in listed["items"])

    async with AsyncExitStack() as stack:
        hanging = await stack.enter_async_context(endpoint())
        addresses: Sequence[str] = (rejecting, hanging.address, "127.0.0.1:1")
        services = []
        for name, address in zip(names, addresses, strict=True):
            tracing = {"endpoint": address, "samplingRatePerMillion": ALL}
            scheduler = f"{namespace}-{name}"
            services.append(await stack.enter_async_context(running(scheduler, gates=GATES, tracing=tracing)))
            for number in range(5):
                wanted = make_pod(f"{name}-{number}", scheduler, nodeSelector={"for": namespace})
                await asyncio.to_thread(api.create, pods, wanted)
        bound = await until(lambda: api.get(pods), all_bound)
        assert len(bound["items"]) == 15
        for service in services:
            await until(lambda service=service: len(service.attempts), lambda count: count == 5)
            assert {attempt.result for attempt in service.attempts} == {"Success"}
        await until(lambda: failed_exports(services[0].port), lambda count: count >= 5)
