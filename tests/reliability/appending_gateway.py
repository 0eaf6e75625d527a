"""A gateway as a process: `python appending_gateway.py PORT FILE` appends what it takes before it acknowledges it.

A line a span: trace id and span id. What was written outlives the process, so that it may be killed at any time.
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def main() -> None:
    """Serve until killed; say the port on standard output."""
    port, path = sys.argv[1:]
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def export(raw: bytes, _: grpc.ServicerContext) -> bytes:
        request = ExportTraceServiceRequest.FromString(raw)
        spans = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
        os.write(out, "".join([f"{span.trace_id.hex()} {span.span_id.hex()}\n" for span in spans]).encode())
        return b""

    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(export)
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    print(bound, flush=True)
    threading.Event().wait()


main()
