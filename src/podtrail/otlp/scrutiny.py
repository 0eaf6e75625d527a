"""Looks at a request span by span, the slow way, so that a bad span is rejected alone.

A header (resource or scope) that can't be decoded costs the spans under it: nobody could say whose they are.
"""

from collections import Counter
from typing import Any, cast

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.lite import REQUEST, RESOURCE_SPANS, SCOPE_SPANS, lite_type

_REQUEST = cast("Any", lite_type(REQUEST, {"resource_spans": None}))
_RESOURCE_SPANS = cast("Any", lite_type(RESOURCE_SPANS, {"scope_spans": None}))
_SCOPE_SPANS = cast("Any", lite_type(SCOPE_SPANS, {"spans": None}))

_MOST_REASONS = 10
"""Told in an answer: a request may have thousands, such as ids of any length."""


class Rejections:
    """Counts rejected spans by reason. `zero_ids`: whether ids of zeros are good enough."""

    def __init__(self, *, zero_ids: bool = False) -> None:
        self._zero_ids = zero_ids
        self._reasons: Counter[str] = Counter()

    def add(self, reason: str, spans: int = 1) -> None:
        """Count rejected spans."""
        if spans:
            self._reasons[reason] += spans

    def admits(self, span: bytes) -> bool:
        """Say whether a decodable span has valid ids; if not, count it."""
        message = trace_pb2.Span.FromString(span)
        for name, size in (("trace_id", 16), ("span_id", 8)):
            found: bytes = getattr(message, name)
            if len(found) != size:
                self.add(f"{name} of {len(found)} bytes instead of {size}")
                return False
            if not self._zero_ids and not any(found):
                self.add(f"{name} of zeros")
                return False
        return True

    @staticmethod
    def regular(span: bytes) -> bytes:
        """Return an admitted span with its ids in front, as every SDK writes them."""
        if span[:2] == b"\x0a\x10" and span[18:20] == b"\x12\x08":
            return span
        return trace_pb2.Span.FromString(span).SerializeToString()

    @property
    def count(self) -> int:
        """All rejected spans."""
        return sum(self._reasons.values())

    def reason(self) -> str:
        """Return the reasons with their numbers of spans, the most frequent ones; "" when nothing was rejected."""
        if not self._reasons:
            return ""
        told = self._reasons.most_common(_MOST_REASONS)
        others = self.count - sum(spans for _, spans in told)
        words = [f"{spans} with {reason}" for reason, spans in told]
        return ", ".join([*words, f"{others} for other reasons"] if others else words)


def scrutinize(raw: bytes, rejections: Rejections) -> bytes:
    """Return a request in canonical form, without the spans that can't be decoded, which are counted.

    Singular fields that stand more than once are merged, as every parser does.

    Raises:
        DecodeError: not even the spans' borders can be found.
    """
    request = _REQUEST.FromString(raw)
    sound = [_resource_spans(resource_spans, rejections) for resource_spans in request.resource_spans]
    del request.resource_spans[:]
    request.resource_spans.extend(message for message in sound if message is not None)
    canonical: bytes = request.SerializeToString()
    return canonical


def _resource_spans(raw: bytes, rejections: Rejections) -> bytes | None:
    lite = _RESOURCE_SPANS.FromString(raw)
    scopes = list(lite.scope_spans)
    lite.ClearField("scope_spans")
    header = _decoded_resource(lite.SerializeToString())
    if header is None:
        spans = sum(len(_SCOPE_SPANS.FromString(scope).spans) for scope in scopes)
        rejections.add("a resource that can't be decoded (invalid UTF-8 or nesting too deep)", spans)
        return None
    sound = [_scope_spans(scope, rejections) for scope in scopes]
    lite = _RESOURCE_SPANS.FromString(header.SerializeToString())
    lite.scope_spans.extend(scope for scope in sound if scope is not None)
    return cast("bytes", lite.SerializeToString())


def _scope_spans(raw: bytes, rejections: Rejections) -> bytes | None:
    lite = _SCOPE_SPANS.FromString(raw)
    spans = list(lite.spans)
    lite.ClearField("spans")
    header = _decoded_scope(lite.SerializeToString())
    if header is None:
        rejections.add("a scope that can't be decoded (invalid UTF-8 or nesting too deep)", len(spans))
        return None
    lite = _SCOPE_SPANS.FromString(header.SerializeToString())
    for span in spans:
        decoded = _decoded_span(span)
        if decoded is None:
            rejections.add("content that can't be decoded (invalid UTF-8 or nesting too deep)")
        elif rejections.admits(span):
            lite.spans.append(span if decoded.ByteSize() == len(span) else decoded.SerializeToString())
    return cast("bytes", lite.SerializeToString())


# Each is decoded at its depth within a request: a parser's limit on nesting counts from the request down.
def _decoded_resource(resource_spans: bytes) -> trace_pb2.ResourceSpans | None:
    request = _REQUEST(resource_spans=[resource_spans]).SerializeToString()
    try:
        return ExportTraceServiceRequest.FromString(request).resource_spans[0]
    except DecodeError:
        return None


def _decoded_scope(scope_spans: bytes) -> trace_pb2.ScopeSpans | None:
    found = _decoded_resource(_RESOURCE_SPANS(scope_spans=[scope_spans]).SerializeToString())
    return None if found is None else found.scope_spans[0]


def _decoded_span(span: bytes) -> trace_pb2.Span | None:
    found = _decoded_scope(_SCOPE_SPANS(spans=[span]).SerializeToString())
    return None if found is None else found.spans[0]
