"""Writes what a server answers: ExportTraceServiceResponse and google.rpc.Status, in protobuf and OTLP JSON."""

import json
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_NANOSECONDS = 1_000_000_000
_LONGEST_MESSAGE = 1_024
"""Characters. A gRPC status travels in trailers, for which many clients have no more than 8 KiB."""


def export_response(rejected: int = 0, message: str = "") -> bytes:
    """Return a serialized ExportTraceServiceResponse; a message without rejected spans is a warning."""
    response = ExportTraceServiceResponse()
    if rejected or message:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = _shorten(message)
    return response.SerializeToString()


def export_response_json(rejected: int = 0, message: str = "") -> bytes:
    """Return the same in OTLP JSON: 64-bit integers are strings."""
    if not (rejected or message):
        return b"{}"
    return _json({"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": _shorten(message)}})


def retry_info(seconds: float) -> bytes:
    """Return a serialized google.rpc.RetryInfo: worth trying again after `seconds`."""
    serialized: bytes = _retry_info(seconds).SerializeToString()
    return serialized


def status(code: int, message: str, retry_after: float | None = None) -> bytes:
    """Return a serialized google.rpc.Status, with a RetryInfo in its details when `retry_after` (seconds) is given."""
    answer = Status(code=code, message=_shorten(message))
    if retry_after is not None:
        answer.details.add().Pack(_retry_info(retry_after))
    serialized: bytes = answer.SerializeToString()
    return serialized


def status_json(code: int, message: str, retry_after: float | None = None) -> bytes:
    """Return the same in protobuf's JSON mapping."""
    answer: dict[str, Any] = {"code": code, "message": _shorten(message)}
    if retry_after is not None:
        delay = f"{max(retry_after, 0.0):.9f}".rstrip("0").rstrip(".") + "s"
        answer["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return _json(answer)


def _retry_info(seconds: float) -> RetryInfo:
    whole, part = divmod(round(max(seconds, 0.0) * _NANOSECONDS), _NANOSECONDS)
    return RetryInfo(retry_delay=Duration(seconds=whole, nanos=part))


def _shorten(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


def _json(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
