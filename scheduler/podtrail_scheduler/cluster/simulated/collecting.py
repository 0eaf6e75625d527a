# ruff: noqa: ARG002 - the SDK gives a span processor more than this one needs
"""A span processor that keeps finished spans until they are fetched: no thread, no queue that could overflow."""

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from podtrail_instrumentation.encoding import encode as encode_part

SPANS_A_REQUEST = 512


class CollectingSpanProcessor(SpanProcessor):
    """Whoever runs the scheduler fetches with `drain` as often as it can use spans."""

    def __init__(self) -> None:
        self._finished: list[ReadableSpan] = []
        self.open = 0
        """How many recorded spans have begun and not ended."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Counts the span as open."""
        self.open += 1

    def on_end(self, span: ReadableSpan) -> None:
        """Keeps the span."""
        self.open -= 1
        self._finished.append(span)

    @property
    def waiting(self) -> int:
        """How many finished spans wait to be fetched."""
        return len(self._finished)

    def drain(self, until: int) -> list[ReadableSpan]:
        """Hands over the spans that ended by `until` (unix nanoseconds), in the order in which they ended."""
        over = [span for span in self._finished if (span.end_time or 0) <= until]
        if len(over) == len(self._finished):
            self._finished = []
        else:
            self._finished = [span for span in self._finished if (span.end_time or 0) > until]
        return sorted(over, key=_end)


def _end(span: ReadableSpan) -> int:
    assert span.end_time is not None
    return span.end_time


def encode(spans: Sequence[ReadableSpan]) -> list[bytes]:
    """The spans as serialized `ExportTraceServiceRequest` messages of at most 512 spans."""
    parts = (spans[start : start + SPANS_A_REQUEST] for start in range(0, len(spans), SPANS_A_REQUEST))
    return [encode_part(part) for part in parts]
