"""The attempt and what the API server does for it are one trace (KEP-5927 with KEP-647)."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

pytestmark = pytest.mark.control_plane

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


class Collector:
    """An OTLP endpoint, and the spans it was sent."""

    def __init__(self) -> None:
        self._taken: Queue[ExportTraceServiceRequest] = Queue()
        self._spans: list[Span] = []
        self._server = grpc.server(ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._export, ExportTraceServiceRequest.FromString, ExportTraceServiceResponse.SerializeToString
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _export(self, request: ExportTraceServiceRequest, _: grpc.ServicerContext) -> ExportTraceServiceResponse:
        self._taken.put(request)
        return ExportTraceServiceResponse()

    def spans(self, name: str) -> list[Span]:
        """All spans of that name so far."""
        while not self._taken.empty():
            for resource in self._taken.get().resource_spans:
                self._spans += [span for scope in resource.scope_spans for span in scope.spans]
        return [span for span in self._spans if span.name == name]

    def stop(self) -> None:
        self._server.stop(None).wait()


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


def test_the_api_servers_spans_of_the_binding_are_children_of_the_attempt(
    start_control_plane: Any, running: Any, until: Any, make_pod: Any, tmp_path: Path, collector: Collector
) -> None:
    tracing = {"endpoint": collector.address, "samplingRatePerMillion": 0}
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
    (tmp_path / "tracing.json").write_text(json.dumps(kind | tracing))
    plane = start_control_plane(apiserver=[f"--tracing-config-file={tmp_path / 'tracing.json'}"])
    api, pods = plane.api, "/api/v1/namespaces/default/pods"
    api.node("n")

    async def test() -> None:
        # The API server takes a parent from system:masters only; to all others it links.
        async with running(
            "second",
            kubeconfig=plane.kubeconfig,
            gates="SchedulerTracing=true,AsyncTraceContextPropagation=true",
            tracing=tracing | {"samplingRatePerMillion": 1_000_000},
        ):
            await asyncio.to_thread(api.create, pods, make_pod("web", "second"))
            await until(lambda: api.get(f"{pods}/web"), lambda pod: pod["spec"].get("nodeName"))
            path = "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding"
            (served,) = await until(lambda: collector.spans(path))
            (root,) = await until(lambda: collector.spans("SchedulePod"))
            (bind,) = await until(lambda: collector.spans("bind"))
            assert served.trace_id == root.trace_id
            ours = {span.span_id for name in ("bind", "plugin: DefaultBinder") for span in collector.spans(name)}
            assert served.parent_span_id in ours
            assert bind.trace_id == root.trace_id
            pod = await asyncio.to_thread(api.get, f"{pods}/web")
            written = pod["metadata"]["annotations"]["tracing.k8s.io/traceparent"]
            assert written == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"

    try:
        asyncio.run(test())
    finally:
        plane.stop()
