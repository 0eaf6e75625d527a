"""Reads what a server answered: partial success, google.rpc.Status and RetryInfo, in protobuf and OTLP JSON."""

import json
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_NANOSECONDS = 1_000_000_000


class MalformedAnswer(ValueError):
    """The bytes are not what a server answers."""


class PartialSuccess(NamedTuple):
    """What became of a request that was accepted (OTLP specification, "Partial Success")."""

    rejected: int
    """Spans rejected for good."""
    message: str
    """Why; with nothing rejected a warning, mostly empty."""


def read_export_response(raw: bytes) -> PartialSuccess:
    """Return what a serialized ExportTraceServiceResponse says.

    Raises:
        MalformedAnswer: the bytes are no such message.
    """
    try:
        partial = ExportTraceServiceResponse.FromString(raw).partial_success
    except DecodeError as error:
        raise MalformedAnswer(f"not an ExportTraceServiceResponse: {error}") from error
    return PartialSuccess(partial.rejected_spans, partial.error_message)


def read_export_response_json(raw: bytes) -> PartialSuccess:
    """Return what an ExportTraceServiceResponse in OTLP JSON says.

    Raises:
        MalformedAnswer: it is no JSON object, or a field has the wrong type.
    """
    partial = _object(raw).get("partialSuccess") or {}
    try:
        return PartialSuccess(int(partial.get("rejectedSpans") or 0), str(partial.get("errorMessage") or ""))
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedAnswer(f"not an ExportTraceServiceResponse: {error}") from error


def status_message(raw: bytes) -> str:
    """Return the message of a serialized google.rpc.Status.

    Raises:
        MalformedAnswer: the bytes are no such message.
    """
    message: str = _status(raw).message
    return message


def status_message_json(raw: bytes) -> str:
    """Return the message of a google.rpc.Status in JSON.

    Raises:
        MalformedAnswer: it is no JSON object.
    """
    return str(_object(raw).get("message") or "")


def retry_delay_of_status(raw: bytes) -> float | None:
    """Return the seconds that the RetryInfo in a serialized google.rpc.Status asks for, None without one.

    That is what the gRPC trailer `grpc-status-details-bin` holds.

    Raises:
        MalformedAnswer: the bytes are no Status, or its RetryInfo is none.
    """
    for detail in _status(raw).details:
        if detail.Is(RetryInfo.DESCRIPTOR):
            return retry_delay(detail.value)
    return None


def retry_delay(raw: bytes) -> float:
    """Return the seconds that a serialized google.rpc.RetryInfo asks for, 0 or more.

    Raises:
        MalformedAnswer: the bytes are no such message.
    """
    try:
        delay = RetryInfo.FromString(raw).retry_delay
    except DecodeError as error:
        raise MalformedAnswer(f"not a google.rpc.RetryInfo: {error}") from error
    seconds: float = delay.seconds + delay.nanos / _NANOSECONDS
    return max(seconds, 0.0)


def _status(raw: bytes) -> Status:
    try:
        return Status.FromString(raw)
    except DecodeError as error:
        raise MalformedAnswer(f"not a google.rpc.Status: {error}") from error


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise MalformedAnswer("not a JSON object")
    return found
