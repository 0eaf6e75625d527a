"""The backend: takes what comes, remembers which spans, and is away when it is told to be."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE
from benchmarks.soak.clients import MOST_TRACES, is_kept


class Backend:
    """Serves on a port of 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.away = False
        """Whether it refuses, as one that starts."""
        self.repeated = 0
        """Spans that came again."""
        self.unwanted = 0
        """Spans that came although they are not to be kept."""
        self._came = bytearray(MOST_TRACES)
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", LARGEST)])
        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._take)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
        self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def _take(self, raw: bytes, context: grpc.ServicerContext) -> bytes:
        if self.away:
            context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        with self._lock:
            for resource_spans in ExportTraceServiceRequest.FromString(raw).resource_spans:
                for scope_spans in resource_spans.scope_spans:
                    for span in scope_spans.spans:
                        self._note(int.from_bytes(span.trace_id[8:], "big"), 1 << span.span_id[-1])
        return b""

    def _note(self, trace: int, span: int) -> None:
        self.unwanted += not is_kept(trace)
        self.repeated += bool(self._came[trace] & span)
        self._came[trace] |= span

    def missing(self, acknowledged: bytearray) -> int:
        """Return how many spans were acknowledged, are to be kept and have not come."""
        with self._lock:
            came = bytes(self._came)
        return sum(
            (spans & ~came[trace]).bit_count() for trace, spans in enumerate(acknowledged) if spans and is_kept(trace)
        )

    def close(self) -> None:
        """Stop serving."""
        self._server.stop(None)
