"""Tries that are watched: podtrail's own span of each request of an exporter."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from podtrail.component.own_spans import are_own, own_span
from podtrail.otlp import Batch

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

Attempt = Callable[[Batch], Awaitable[int]]


def traced(attempt: Attempt, tracer: "Tracer | None", exporter: str) -> Attempt:
    """Return an attempt of which a span tells; what takes own spans of a podtrail along is told by none."""
    if tracer is None:
        return attempt

    async def watched(batch: Batch) -> int:
        if are_own(batch.groups):
            return await attempt(batch)
        with own_span(tracer, f"exporter/{exporter}/traces", exporter=exporter) as span:
            assert span is not None
            span.set_attribute("items", batch.span_count)
            rejected = await attempt(batch)
            span.set_attribute("items.sent", batch.span_count - rejected)
            span.set_attribute("items.failed", rejected)
            return rejected

    return watched
