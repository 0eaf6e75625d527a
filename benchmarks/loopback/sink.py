"""Takes what a pipeline sends on, in a process of its own, and looks at it when all is over."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import NamedTuple

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE

BACKENDS = 4
"""At how many addresses of the loopback the sink listens."""


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
        self.times: list[float] = []
        self.last = time.monotonic()

    def take(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        self.requests.append(request)
        self.last = time.monotonic()
        self.times.append(self.last)
        return b""

    def arrivals(self) -> dict[bytes, float]:
        """Return when each span came first, by its id; span ids are unique in a load."""
        first: dict[bytes, float] = {}
        for at, request in zip(self.times, self.requests, strict=False):
            for resource_spans in ExportTraceServiceRequest.FromString(request).resource_spans:
                for scope_spans in resource_spans.scope_spans:
                    for span in scope_spans.spans:
                        first.setdefault(span.span_id, at)
        return first

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
    """Serve until told None.

    Answers "idle" with the seconds since the last request, "arrivals" with the time of each span, `(spans_a_trace,
    telling)` with what came. Whoever balances among backends finds it at 127.0.0.1 to 127.0.0.4.
    """
    sink = _Sink()
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", LARGEST)])
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(sink.take)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
    for host in range(1, BACKENDS + 1):
        server.add_insecure_port(f"127.0.0.{host}:{port}")
    server.start()
    told.send("ready")
    while (asked := told.recv()) is not None:
        match asked:
            case "idle":
                told.send(time.monotonic() - sink.last)
            case "arrivals":
                told.send(sink.arrivals())
            case _:
                told.send(sink.count(*asked))
    server.stop(None)
