"""Takes what a pipeline sends on, in a process of its own, and looks at it when all is over."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import NamedTuple

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE


class Came(NamedTuple):
    """What came out of a pipeline."""

    spans: int
    repeated: int
    cut: int
    """Traces of which spans are missing."""
    missing: int
    """Traces that had to be kept and did not come."""


class _Sink:
    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.last = time.monotonic()

    def take(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        self.requests.append(request)
        self.last = time.monotonic()
        return b""

    def count(self, spans_a_trace: int, telling: set[bytes]) -> Came:
        seen = Counter(
            (span.trace_id, span.span_id)
            for request in self.requests
            for resource_spans in ExportTraceServiceRequest.FromString(request).resource_spans
            for scope_spans in resource_spans.scope_spans
            for span in scope_spans.spans
        )
        traces = Counter(trace_id for trace_id, _ in seen)
        return Came(
            spans=seen.total(),
            repeated=seen.total() - len(seen),
            cut=sum(spans != spans_a_trace for spans in traces.values()),
            missing=len(telling - traces.keys()),
        )


def take_all(port: int, told: Connection) -> None:
    """Serve; answer "idle" with the seconds since the last request, a `(spans_a_trace, telling)` with what came."""
    sink = _Sink()
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", LARGEST)])
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(sink.take)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    told.send("ready")
    while (asked := told.recv()) is not None:
        told.send(time.monotonic() - sink.last if asked == "idle" else sink.count(*asked))
    server.stop(None)
