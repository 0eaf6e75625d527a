"""Export of finished spans that can never hold up the component: bounded, in its own thread, with its own deadline.

The SDK's batch processor waits up to 30 s for its thread on shutdown and drops spans without telling how many. This
one lets go after `shutdown_timeout` even when the endpoint is a black hole, and counts every span once: exported,
failed, or dropped because the queue was full or time was up.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY as SUPPRESS
from opentelemetry.context import Context, attach, detach, set_value
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from .recorded import RecordedSpan

_logger = logging.getLogger(__name__)


@dataclass
class SpanCounters:
    """What became of finished sampled spans: `started = exported + failed + dropped + still queued`."""

    exported: int = 0
    failed: int = 0
    dropped: int = 0

    def samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        """Name, labels and value of each counter, as they are exposed (KEP-5927)."""
        yield "scheduler_tracing_spans_exported_total", {"result": "success"}, self.exported
        yield "scheduler_tracing_spans_exported_total", {"result": "error"}, self.failed
        yield "scheduler_tracing_spans_dropped_total", {}, self.dropped


class BoundedBatchProcessor(SpanProcessor):
    """Hands batches of finished spans to an exporter; `on_end` costs a lock and never waits for the exporter."""

    def __init__(
        self,
        exporter: SpanExporter,
        counters: SpanCounters,
        *,
        queue_size: int = 2048,
        batch_size: int = 512,
        delay: float = 5.0,
        shutdown_timeout: float = 2.0,
    ) -> None:
        """`delay` and `shutdown_timeout` are seconds; a full queue drops what comes, not what waits."""
        self._exporter = exporter
        self._counters = counters
        self._queue: deque[ReadableSpan] = deque()
        self._queue_size = queue_size
        self._batch_size = batch_size
        self._delay = delay
        self._shutdown_timeout = shutdown_timeout
        self._changed = threading.Condition()
        self._exporting = 0
        self._flushing = False
        self._closed = False
        self._abandoned = False
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do until a span has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queues `span`, or counts it as dropped when there is no room or the processor is shut down."""
        if not isinstance(span, RecordedSpan):  # which is always sampled
            context = span.get_span_context()
            if context is None or not context.trace_flags.sampled:
                return
        with self._changed:
            if self._closed or len(self._queue) >= self._queue_size:
                self._counters.dropped += 1
                return
            self._queue.append(span)
            if len(self._queue) >= self._batch_size:
                self._changed.notify_all()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Waits until what is queued now has been handed over; False when that took longer than the timeout."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            return self._changed.wait_for(
                lambda: not self._queue and not self._exporting, min(timeout_millis, 30_000) / 1000
            )

    def shutdown(self) -> None:
        """Exports what is queued within the deadline, then lets go of the rest, counted as dropped."""
        deadline = time.monotonic() + self._shutdown_timeout
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        # The last tenth is for the exporter, whose shutdown breaks off the call that is under way.
        self._thread.join(self._shutdown_timeout * 0.9)
        with self._changed:
            self._abandoned = True
            self._counters.dropped += len(self._queue)
            self._queue.clear()
        closing = threading.Thread(target=self._exporter.shutdown, name="spans-shutdown", daemon=True)
        closing.start()
        closing.join(max(0.0, deadline - time.monotonic()))
        self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._counters.dropped += self._exporting
            self._exporting = 0

    def _work(self) -> None:
        token = attach(set_value(SUPPRESS, True))
        try:
            while (batch := self._next()) is not None:
                exported = self._export(batch)
                with self._changed:
                    if not self._exporting:
                        continue  # given up by shutdown and counted there
                    self._exporting = 0
                    if exported:
                        self._counters.exported += len(batch)
                    else:
                        self._counters.failed += len(batch)
                    self._changed.notify_all()
        finally:
            detach(token)

    def _next(self) -> list[ReadableSpan] | None:
        """The next batch, once it is full, the delay is over or somebody asks for it; None when all is done."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or (self._flushing and self._queue) or len(self._queue) >= self._batch_size,
                self._delay,
            )
            if self._abandoned or (self._closed and not self._queue):
                return None
            batch = [self._queue.popleft() for _ in range(min(self._batch_size, len(self._queue)))]
            self._exporting = len(batch)
            self._flushing = self._flushing and bool(self._queue)
            return batch

    def _export(self, batch: list[ReadableSpan]) -> bool:
        if not batch:
            return True
        try:
            return self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception:
            # Whatever somebody's exporter raises must not end the thread that exports.
            _logger.exception("exporting %d spans failed", len(batch))
            return False
