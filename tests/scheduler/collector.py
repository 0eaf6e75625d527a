"""An OpenTelemetry collector for tests: what it took, and how it hangs together."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """An OTLP/gRPC server and the spans it took."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, str]] = []
        self.taken: list[tuple[dict[str, str], Sequence[Span]]] = []
        """Each resource, as often as it came, with the spans that came under it."""
        self._server = grpc.server(ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._export,
            request_deserializer=ExportTraceServiceRequest.FromString,
            response_serializer=ExportTraceServiceResponse.SerializeToString,
        )
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _export(self, request: ExportTraceServiceRequest, _: grpc.ServicerContext) -> ExportTraceServiceResponse:
        for resource in request.resource_spans:
            told = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.resources.append(told)
            for scope in resource.scope_spans:
                self.spans += scope.spans
                self.taken.append((told, scope.spans))
        return ExportTraceServiceResponse()

    def stop(self) -> None:
        """Ends it."""
        self._server.stop(None).wait()

    @property
    def names(self) -> list[str]:
        """The names of the spans, in the order in which they came."""
        return [span.name for span in self.spans]

    def named(self, name: str) -> Span:
        """The one span of that name."""
        [span] = [span for span in self.spans if span.name == name]
        return span

    def outline(self, parent: bytes = b"") -> dict[str, object]:
        """The names of the spans below one, and below these."""
        return {
            span.name: self.outline(span.span_id)
            for span in sorted(self.spans, key=lambda span: (span.start_time_unix_nano, span.end_time_unix_nano))
            if span.parent_span_id == parent
        }


def assert_tree_of_a_bound_pod(collector: Collector) -> None:
    """Asserts KEP-5927's tree: cycles, phases and some plugins of one Pod that was bound."""
    cycles = collector.outline()["SchedulePod"]
    assert isinstance(cycles, dict)
    assert list(cycles) == ["schedulingCycle", "bindingCycle"]
    assert list(cycles["schedulingCycle"]) == ["preFilter", "filter", "preScore", "score", "reserve", "permit"]
    assert "plugin: NodeResourcesFit" in cycles["schedulingCycle"]["filter"]
    assert "plugin: NodeResourcesBalancedAllocation" in cycles["schedulingCycle"]["score"]
    assert list(cycles["bindingCycle"]) == ["preBind", "bind", "postBind"]
    assert cycles["bindingCycle"]["bind"] == {"plugin: DefaultBinder": {}}


def attributes(span: Span) -> dict[str, object]:
    """The attributes of a span."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in span.attributes}


@asynccontextmanager
async def silent_endpoint() -> AsyncIterator[str]:
    """The address of something that accepts connections and never says anything."""
    writers = []

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            await reader.read()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in writers:
            writer.close()
        server.close()
