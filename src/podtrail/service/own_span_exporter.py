"""What sends own spans, over OTLP/HTTP or OTLP/gRPC, from the thread of a batch processor: one try each."""

import gzip
import logging
import time
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import grpc
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from podtrail.config.own_traces import OwnOtlpExporter
from podtrail.transport.grpc_client import EXPORT
from podtrail.transport.user_agent import USER_AGENT

_SILENCE_SECONDS: Final = 60.0


class Wire(NamedTuple):
    """A way to a backend."""

    send: Callable[[bytes, float], None]
    """Sends a request within so many seconds; OSError: it was not taken."""
    close: Callable[[], None]


class OwnSpanExporter(SpanExporter):
    """Sends what it is given, or says once a minute why it can't; nothing is tried again."""

    def __init__(self, settings: OwnOtlpExporter, log: logging.Logger, timeout: int) -> None:
        """Take up settings, nothing is connected yet; `timeout` milliseconds is the most for a batch."""
        self._endpoint = settings.endpoint
        self._timeout = min(settings.timeout, timeout) / 1000
        self._wire = _by_grpc(settings) if settings.protocol == "grpc" else _by_http(settings)
        self._log = log
        self._until: float | None = None
        self._silent_until = 0.0
        self._lost = 0

    def hurry(self, seconds: float) -> None:
        """Send only for so long from now on."""
        self._until = time.monotonic() + seconds

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; blocks until they are taken or given up."""
        left = self._timeout if self._until is None else min(self._timeout, self._until - time.monotonic())
        try:
            if left <= 0:
                raise OSError("podtrail is about to end")
            self._wire.send(encode_spans(spans).SerializeToString(), left)
        except OSError as error:
            self._lose(len(spans), error)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Let go of the connection."""
        self._wire.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - as the SDK has it
        """Return True: nothing waits here."""
        return True

    def _lose(self, spans: int, error: OSError) -> None:
        self._lost += spans
        if time.monotonic() >= self._silent_until:
            self._log.warning("%d own spans could not be sent to %s: %s", self._lost, self._endpoint, error)
            self._lost, self._silent_until = 0, time.monotonic() + _SILENCE_SECONDS


def _by_http(settings: OwnOtlpExporter) -> Wire:
    base = settings.endpoint if "://" in settings.endpoint else f"{_scheme(settings)}://{settings.endpoint}"
    url = base if urlsplit(base).path.strip("/") else f"{base.rstrip('/')}/v1/traces"
    headers = {"Content-Type": "application/x-protobuf", "User-Agent": USER_AGENT, **_headers(settings)}
    packed = settings.compression == "gzip"
    if packed:
        headers["Content-Encoding"] = "gzip"

    def send(body: bytes, seconds: float) -> None:
        request = urllib.request.Request(url, gzip.compress(body) if packed else body, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310 - http or https, see above
                answer.read()
        except HTTPException as error:  # what answers does not speak HTTP
            raise ConnectionError(f"{type(error).__name__}: {error}") from error

    return Wire(send, lambda: None)


def _by_grpc(settings: OwnOtlpExporter) -> Wire:
    target = settings.endpoint.partition("://")[2] or settings.endpoint
    scheme = settings.endpoint.partition("://")[0] if "://" in settings.endpoint else _scheme(settings)
    compression = grpc.Compression.Gzip if settings.compression == "gzip" else grpc.Compression.NoCompression
    options = (("grpc.primary_user_agent", USER_AGENT),)
    if scheme == "http":
        channel = grpc.insecure_channel(target, options, compression)
    else:
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(), options, compression)
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(EXPORT)
    metadata = tuple((name.lower(), value) for name, value in _headers(settings).items())

    def send(body: bytes, seconds: float) -> None:
        try:
            call(body, timeout=seconds, metadata=metadata)
        except grpc.RpcError as error:
            raise ConnectionError(f"{error.code().name}: {error.details()}") from error
        except ValueError as error:  # of a channel that is closed
            raise ConnectionError(str(error)) from error

    return Wire(send, channel.close)


def _scheme(settings: OwnOtlpExporter) -> str:
    return "http" if settings.insecure else "https"


def _headers(settings: OwnOtlpExporter) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in settings.headers.items()}
