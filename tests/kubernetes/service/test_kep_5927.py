"""The integration and e2e tests that KEP-5927 lists, on a real API server; their unit tests are in tests/scheduler."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

KEY = "tracing.k8s.io/traceparent"
CREATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
GATES = "SchedulerTracing=true,AsyncTraceContextPropagation=true"


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    yield server
    server.stop()


@pytest.fixture
def schedule(control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, collector: Collector) -> Any:
    """Schedules one Pod, created with a trace context, and returns it as the API server has it when it is bound."""

    def run(gates: str = GATES, **fields: Any) -> Any:
        api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
        for number in range(2):
            api.node(f"{namespace}-{number}", labels={"for": namespace})
        wanted = make_pod("web", namespace, nodeSelector={"for": namespace})
        wanted["metadata"]["annotations"] = {KEY: CREATION}
        tracing = {"endpoint": collector.endpoint, "samplingRatePerMillion": 1_000_000}

        async def test() -> Any:
            async with running(namespace, gates=gates, **{"tracing": tracing, **fields}):
                await asyncio.to_thread(api.create, pods, wanted)
                return await until(lambda: api.get(f"{pods}/web"), lambda pod: "nodeName" in pod["spec"])

        return asyncio.run(test())

    return run


def test_scheduling_a_pod_produces_trace_spans_with_the_expected_hierarchy(schedule: Any, collector: Collector) -> None:
    schedule()
    cycles = collector.outline()["SchedulePod"]
    assert isinstance(cycles, dict)
    assert list(cycles) == ["schedulingCycle", "bindingCycle"]
    assert list(cycles["schedulingCycle"]) == ["preFilter", "filter", "preScore", "score", "reserve", "permit"]
    assert "plugin: NodeResourcesFit" in cycles["schedulingCycle"]["filter"]
    assert "plugin: NodeResourcesBalancedAllocation" in cycles["schedulingCycle"]["score"]
    assert list(cycles["bindingCycle"]) == ["preBind", "bind", "postBind"]
    assert cycles["bindingCycle"]["bind"] == {"plugin: DefaultBinder": {}}


def test_trace_context_from_pod_annotations_results_in_a_span_link_to_the_api_servers_trace(
    schedule: Any, collector: Collector
) -> None:
    schedule()
    root = collector.named("SchedulePod")
    [link] = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CREATION[3:35], CREATION[36:52])
    assert root.trace_id.hex() != CREATION[3:35]


def test_the_scheduler_re_injects_its_own_trace_context_into_the_pods_annotations_after_binding(
    schedule: Any, collector: Collector
) -> None:
    pod = schedule()
    root = collector.named("SchedulePod")
    assert pod["metadata"]["annotations"][KEY] == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"


def test_spans_are_exported_with_the_correct_structure_and_attributes(schedule: Any, collector: Collector) -> None:
    pod = schedule()
    told = attributes(collector.named("SchedulePod"))
    wait = told.pop("scheduler.queue_wait_ms")
    assert isinstance(wait, int)
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


def test_with_the_gate_off_nothing_is_exported_and_the_annotation_stays(schedule: Any, collector: Collector) -> None:
    pod = schedule("")
    assert pod["metadata"]["annotations"][KEY] == CREATION
    assert collector.spans == []
