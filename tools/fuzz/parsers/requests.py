"""Requests in protobuf, beside the reference: `google.protobuf` on the OTLP descriptors."""

from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.otlp import MalformedRequest, read_request, write_request
from tools.fuzz.parser import Parser
from tools.fuzz.wire import framed, mutate_message


def check(data: bytes) -> None:
    """Read a request; what the reference reads has to come out, but for spans without valid ids, which are counted."""
    reference = _reference(data)
    try:
        intake = read_request(data)
    except MalformedRequest:
        assert reference is None, "refused as a whole, though the reference reads it"
        return
    written = write_request(intake.groups)
    again = read_request(written)
    assert again.rejected == 0, f"what was accepted is refused when it comes again: {again.reason}"
    assert write_request(again.groups) == written, "what was accepted is written otherwise when it comes again"
    assert bool(intake.rejected) == bool(intake.reason), "rejected without a reason, or the reverse"
    accepted = [*_spans(ExportTraceServiceRequest.FromString(written))]
    assert len(accepted) == sum(group.span_count for group in intake.groups), "spans are miscounted"
    if reference is not None:
        spans = [*_spans(reference)]
        valid = [span for span in spans if _is_valid(span[-1])]
        assert _bytes(accepted) == _bytes(valid), "spans are not those that the reference reads"
        assert intake.rejected == len(spans) - len(valid), "rejected spans are miscounted"


_Placed = tuple[bytes, bytes, Span]


def _reference(data: bytes) -> ExportTraceServiceRequest | None:
    try:
        return ExportTraceServiceRequest.FromString(data)
    except DecodeError:
        return None


def _spans(request: ExportTraceServiceRequest) -> Iterator[_Placed]:
    """Yield the spans with what stands above them."""
    for resource_spans in request.resource_spans:
        scopes = [*resource_spans.scope_spans]
        resource = type(resource_spans)()
        resource.CopyFrom(resource_spans)
        resource.ClearField("scope_spans")
        for scope_spans in scopes:
            scope = type(scope_spans)()
            scope.CopyFrom(scope_spans)
            scope.ClearField("spans")
            for span in scope_spans.spans:
                yield _canonical(resource), _canonical(scope), span


def _canonical(message: object) -> bytes:
    return message.SerializeToString(deterministic=True)  # type: ignore[attr-defined, no-any-return]


def _bytes(spans: Iterable[_Placed]) -> list[tuple[bytes, bytes, bytes]]:
    return [(resource, scope, _canonical(span)) for resource, scope, span in spans]


def _is_valid(span: Span) -> bool:
    return len(span.trace_id) == 16 and any(span.trace_id) and len(span.span_id) == 8 and any(span.span_id)


def seeds() -> Iterator[bytes]:
    """Yield requests of some spans, with all that OTLP has."""
    text = b"\x0a\x01k\x12\x03\x0a\x01v"
    span = (
        framed(1, bytes(range(16))) + framed(2, b"\1" * 8) + framed(3, b"a=b") + framed(4, b"\2" * 8)
        + framed(5, b"name") + b"\x30\x02" + b"\x39" + (10**18).to_bytes(8, "little")
        + b"\x41" + (10**18 + 1).to_bytes(8, "little") + framed(9, text) + b"\x50\1"
        + framed(11, b"\x09" + bytes(8) + framed(2, b"event") + framed(3, text)) + b"\x60\1"
        + framed(13, framed(1, b"\3" * 16) + framed(2, b"\4" * 8) + framed(4, text)) + framed(15, b"\x12\x01m\x18\x02")
    )  # fmt: skip
    other = framed(1, b"\7" * 16) + framed(2, b"\1" * 8) + b"\x39" + bytes(8)
    scope = framed(1, framed(1, b"scope") + framed(2, b"1.0")) + framed(2, span) + framed(2, other) + framed(3, b"u")
    yield framed(1, framed(1, framed(1, text)) + framed(2, scope) + framed(3, b"url"))
    yield framed(1, framed(2, framed(2, other) * 3) * 2) * 2
    yield b""


PARSER = Parser(check, seeds, mutate_message, words=(b"\x0a\x10", b"\x12\x08", bytes(16), b"\xc1\x3e"))
