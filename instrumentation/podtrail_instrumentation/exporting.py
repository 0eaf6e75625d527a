"""The SDK's exporter over OTLP/gRPC, with an encoding that costs less."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan

from .encoding import encode


def _whatever(state: object) -> None:
    """Nobody needs to know how the connection is."""


class SpanExporter(OTLPSpanExporter):
    """Sends, retries and gives up as the SDK's does; connects at once, even if no span ever comes (KEP-5927)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        assert self._channel is not None
        self._channel.subscribe(_whatever, try_to_connect=True)

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        return ExportTraceServiceRequest.FromString(encode(data))
