"""The SDK's exporter over OTLP/gRPC, with an encoding that costs less."""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan

from .encoding import encode


class SpanExporter(OTLPSpanExporter):
    """Sends, retries and gives up as the SDK's does."""

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        return ExportTraceServiceRequest.FromString(encode(data))
