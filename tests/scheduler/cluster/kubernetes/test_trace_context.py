"""The attempt and the API server's spans of its requests hang together (KEP-5927 with KEP-647).

The API server takes its parent from a request of system:masters only; its spans of all other requests are roots of
their own that link to who asked.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

ALL = 1_000_000
GATES = "SchedulerTracing=true,AsyncTraceContextPropagation=true"
BINDING = "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding"


class Traced:
    """A Pod that was bound, its attempt's spans, and the API server's of its binding."""

    def __init__(self, pod: Any, spans: list[Span], served: Span) -> None:
        self.pod = pod
        [self.root] = [span for span in spans if span.name == "SchedulePod"]
        self.binding = {span.span_id for span in spans if span.name in ("bind", "plugin: DefaultBinder")}
        self.served = served


@pytest.fixture
def attempt(traced_control_plane: Any, cluster_collector: Collector, running: Any, until: Any, make_pod: Any) -> Any:
    """Schedules one Pod with somebody's kubeconfig; returns when all spans are there."""

    def run(name: str, kubeconfig: Path) -> Traced:
        api, pods = traced_control_plane.api, "/api/v1/namespaces/default/pods"
        tracing = {"endpoint": cluster_collector.endpoint, "samplingRatePerMillion": ALL}

        def of_attempt() -> list[Span]:
            roots = [
                span
                for span in list(cluster_collector.spans)
                if span.name == "SchedulePod" and attributes(span)["k8s.pod.name"] == name
            ]
            return [span for span in list(cluster_collector.spans) for root in roots if span.trace_id == root.trace_id]

        def of_binding() -> list[Span]:
            ours = {span.span_id for span in of_attempt()}
            named = [span for span in list(cluster_collector.spans) if span.name == BINDING]
            return [
                span
                for span in named
                if span.parent_span_id in ours or any(link.span_id in ours for link in span.links)
            ]

        async def test() -> Traced:
            async with running(name, kubeconfig=kubeconfig, gates=GATES, tracing=tracing):
                await asyncio.to_thread(api.create, pods, make_pod(name, name))
                pod = await until(lambda: api.get(f"{pods}/{name}"), lambda pod: pod["spec"].get("nodeName"))
                await until(lambda: len(of_attempt()))
                await until(lambda: len(of_binding()))
            [served] = of_binding()
            return Traced(pod, of_attempt(), served)

        return asyncio.run(test())

    return run


def test_the_api_servers_spans_of_the_binding_are_children_of_the_attempt_of_a_system_master(
    attempt: Any, traced_control_plane: Any
) -> None:
    traced = attempt("master", traced_control_plane.kubeconfig)
    assert traced.served.trace_id == traced.root.trace_id
    assert traced.served.parent_span_id in traced.binding
    written = traced.pod["metadata"]["annotations"]["tracing.k8s.io/traceparent"]
    assert written == f"00-{traced.root.trace_id.hex()}-{traced.root.span_id.hex()}-01"


def test_the_api_servers_spans_of_the_binding_link_to_the_attempt_of_an_ordinary_user(
    attempt: Any, traced_control_plane: Any
) -> None:
    traced = attempt("ordinary", traced_control_plane.user("system:kube-scheduler"))
    [link] = traced.served.links
    assert link.trace_id == traced.root.trace_id
    assert link.span_id in traced.binding
    assert traced.served.trace_id != traced.root.trace_id
    assert traced.served.parent_span_id == b""
