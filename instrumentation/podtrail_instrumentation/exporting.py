"""The SDK's exporter over OTLP/gRPC, with an encoding that costs less."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan

from .encoding import encode

_PATIENCE = 0.5
"""Seconds for which a shutdown waits until the connection has been asked for."""
_LAST_LOOK = 0.3
"""Seconds within which gRPC's thread has looked at the connection for the last time; it does so every 0.2."""


class SpanExporter(OTLPSpanExporter):
    """Sends, retries and gives up as the SDK's does; connects at once, even if no span ever comes (KEP-5927)."""

    _asked: threading.Event
    _asked_at: float

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        assert self._channel is not None
        self._asked = threading.Event()
        self._channel.subscribe(self._connecting, try_to_connect=True)

    def shutdown(self, timeout_millis: float = 30_000, **settings: Any) -> None:
        """Ends it; breaks off a call that is under way."""
        # gRPC's thread that asks for the connection raises if the channel is closed under its hands.
        if self._asked.wait(_PATIENCE):
            time.sleep(max(0.0, self._asked_at + _LAST_LOOK - time.monotonic()))
        super().shutdown(timeout_millis, **settings)

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        return ExportTraceServiceRequest.FromString(encode(data))

    def _connecting(self, _: object) -> None:
        """It was asked for: how it gets on nobody needs to know."""
        assert self._channel is not None
        self._channel.unsubscribe(self._connecting)
        self._asked_at = time.monotonic()
        self._asked.set()
