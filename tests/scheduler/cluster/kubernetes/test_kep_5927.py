"""The integration and e2e tests that KEP-5927 lists, on a real API server; its unit tests are in tests/scheduler.

`test_a_scheduled_pod_leaves_...` has those of a Pod that is scheduled: spans in the expected hierarchy, with the
correct structure and attributes; a link to the trace context in the Pod's annotations; its own written into them. "OTLP
endpoint is unreachable, backend rejects data" is `test_an_exporter_that_fails_hangs_or_is_absent_...`. The rows of the
KEP's table of gate and rate are in tests/scheduler/test_kep_5927.py; that the gates get there is in test_gates.py. What
the API server records of the binding is in test_trace_context.py.
"""

import asyncio
import re
import socket
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.scheduler.collector import Collector, assert_tree_of_a_bound_pod, attributes, silent_endpoint

pytestmark = pytest.mark.control_plane

KEY = "tracing.k8s.io/traceparent"
CREATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
GATES = "SchedulerTracing=true,AsyncTraceContextPropagation=true"
ALL = 1_000_000


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


@pytest.mark.parametrize("resource", ["", "host.name=node-7,k8s.cluster.name=a%20b"], ids=["of its own", "given"])
async def test_a_scheduled_pod_leaves_the_spans_of_the_kep_at_the_collector_and_their_context_on_the_pod(
    control_plane: Any,
    namespace: str,
    running: Any,
    until: Any,
    make_pod: Any,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    resource: str,
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", resource)
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    for number in range(2):
        api.node(f"{namespace}-{number}", labels={"for": namespace})
    wanted = make_pod("web", namespace, nodeSelector={"for": namespace})
    wanted["metadata"]["annotations"] = {KEY: CREATION}
    tracing = {"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}
    election = {"leaderElect": True, "resourceName": "scheduler", "resourceNamespace": namespace}
    async with running(namespace, gates=GATES, tracing=tracing, leaderElection=election):
        await asyncio.to_thread(api.create, pods, wanted)
        pod = await until(lambda: api.get(f"{pods}/web"), lambda pod: "nodeName" in pod["spec"])
        await until(lambda: "SchedulePod" in collector.names)
        lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/scheduler")

    assert_tree_of_a_bound_pod(collector)

    root, node = collector.named("SchedulePod"), pod["spec"]["nodeName"]
    [link] = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CREATION[3:35], CREATION[36:52])
    assert root.trace_id.hex() != CREATION[3:35]
    assert root.parent_span_id == b""
    assert pod["metadata"]["annotations"][KEY] == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"

    told = attributes(root)
    assert isinstance(told.pop("scheduler.queue_wait_ms"), int)
    assert re.fullmatch(r"[0-9a-f]{12}", str(told.pop("scheduler.config.generation")))  # of ours, beside the KEP's
    assert told == {
        "k8s.pod.name": "web",
        "k8s.pod.namespace": namespace,
        "k8s.namespace.name": namespace,
        "k8s.pod.uid": pod["metadata"]["uid"],
        "scheduler.profile": namespace,
        "scheduler.attempts": 1,
        "scheduler.result": "Success",
        "scheduler.selected_node": node,
    }
    assert attributes(collector.named("bind"))["scheduler.selected_node"] == node
    fit = attributes(next(span for span in collector.spans if span.name == "plugin: NodeResourcesFit"))
    assert fit["scheduler.plugin.name"] == "NodeResourcesFit"

    given = {"host.name": "node-7", "k8s.cluster.name": "a b"} if resource else {"host.name": socket.gethostname()}
    own = {"service.name": "podtrail-scheduler", "service.instance.id": lease["spec"]["holderIdentity"]}
    found = collector.resources[0]
    assert found.pop("service.version")
    assert found == own | given


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
        hanging = await stack.enter_async_context(silent_endpoint())
        addresses: Sequence[str] = (rejecting, hanging, "127.0.0.1:1")
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
