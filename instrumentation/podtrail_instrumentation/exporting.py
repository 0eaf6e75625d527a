"""Export over OTLP/gRPC without TLS: one request at a time, tried again while the collector is away for a moment."""

import random
import threading
import time
from collections.abc import Mapping, Sequence

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from .encoding import encode
from .environment import BatchSettings, compressed, headers
from .span_counters import SpanCounters

_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
}
"""By OTLP's specification; RESOURCE_EXHAUSTED besides, when it says after what time."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_OPTIONS = (
    ("grpc.primary_user_agent", "podtrail-instrumentation"),
    ("grpc.initial_reconnect_backoff_ms", int(_FIRST_PAUSE * 1000)),
    ("grpc.max_reconnect_backoff_ms", int(_LONGEST_PAUSE * 1000)),
)

_PATIENCE = 0.5
"""Seconds for which a shutdown waits until the connection has been asked for."""
_LAST_LOOK = 0.3
"""Seconds within which gRPC's thread has looked at the connection for the last time; it does so every 0.2."""


class OtlpExporter(SpanExporter):
    """Connects at once, even if no span ever comes (KEP-5927)."""

    def __init__(
        self, address: str, counters: SpanCounters, settings: BatchSettings, environment: Mapping[str, str]
    ) -> None:
        self._counters = counters
        self._settings = settings
        self._headers = tuple(headers(environment))
        compression = grpc.Compression.Gzip if compressed(environment) else grpc.Compression.NoCompression
        self._channel = grpc.insecure_channel(address, options=_OPTIONS, compression=compression)
        self._call: grpc.UnaryUnaryMultiCallable[bytes, ExportTraceServiceResponse] = self._channel.unary_unary(
            _METHOD, response_deserializer=ExportTraceServiceResponse.FromString
        )
        self._random = random.Random()  # noqa: S311, for jitter; its own, as everybody's may be seeded and watched
        self._closing = threading.Event()
        self._asked = threading.Event()
        self._asked_at = 0.0
        self._channel.subscribe(self._connecting, try_to_connect=True)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends the spans; blocks until they are taken or given up."""
        request = encode(spans)
        deadline = time.monotonic() + self._settings.export_timeout
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            left = deadline - time.monotonic()
            try:
                answer = self._call(request, min(left, self._settings.call_timeout), self._headers)
            except grpc.RpcError as error:
                self._counters.problem = f"{error.code().name}: {error.details()}"
                told = _told_to_wait(error)
                if not _is_retryable(error, told):
                    break
                wait = max(told or 0.0, pause * self._random.uniform(0.8, 1.2))
                if time.monotonic() + wait >= deadline or self._closing.wait(wait):
                    break
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._look_at(answer)
                return SpanExportResult.SUCCESS
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Ends it; breaks off a call that is under way."""
        self._closing.set()
        # gRPC's thread that asks for the connection raises if the channel is closed under its hands.
        if self._asked.wait(_PATIENCE):
            time.sleep(max(0.0, self._asked_at + _LAST_LOOK - time.monotonic()))
        self._channel.close()

    def _look_at(self, answer: ExportTraceServiceResponse) -> None:
        rejected = answer.partial_success.rejected_spans
        if rejected > 0:
            self._counters.lost["rejected"] += rejected
            self._counters.problem = answer.partial_success.error_message

    def _connecting(self, _: object) -> None:
        """It was asked for: how it gets on nobody needs to know."""
        self._channel.unsubscribe(self._connecting)
        self._asked_at = time.monotonic()
        self._asked.set()


def _told_to_wait(error: grpc.RpcError) -> float | None:
    """The seconds after which the collector asks to try again."""
    for each in error.trailing_metadata() or ():
        if each.key == "grpc-status-details-bin":
            for detail in Status.FromString(each.value).details:
                if detail.Is(RetryInfo.DESCRIPTOR):
                    delay = RetryInfo.FromString(detail.value).retry_delay
                    return float(delay.seconds + delay.nanos / 1e9)
    return None


def _is_retryable(error: grpc.RpcError, told: float | None) -> bool:
    code = error.code()
    return code in _RETRYABLE or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and told is not None)
