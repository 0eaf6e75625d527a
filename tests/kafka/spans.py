"""Requests with one span, to be put into messages."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def message(name: str, padding: int = 0) -> bytes:
    """Return a request with one span of this name, in a trace of its own, with so many bytes more."""
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=name.encode().rjust(16, b"-")[-16:],
            span_id=name.encode().rjust(8, b"-")[-8:],
            name=name,
            start_time_unix_nano=1,
            end_time_unix_nano=2,
        )
    )
    if padding:
        span.attributes.add(key="padding").value.string_value = "x" * padding
    return request.SerializeToString()
