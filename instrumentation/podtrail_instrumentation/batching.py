# ruff: noqa: ARG002 - the SDK tells a span processor more than this one needs
"""Export of finished spans that can never hold up the component: bounded, in its own thread, with its own deadline.

The SDK's batch processor waits up to 30 s for its thread on shutdown, drops parts of traces, and tells of neither. This
one lets go after `shutdown_timeout` even when the endpoint is a black hole, loses attempts whole, and counts every
span once: exported, or lost for a reason.
"""

import logging
import threading
import time
from collections.abc import Sequence

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY as SUPPRESS
from opentelemetry.context import Context, attach, detach, set_value
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from .environment import BatchSettings
from .export_queue import WaitingSpans
from .recorded import RecordedSpan
from .span_counters import LossReport, SpanCounters

_SHORTEST_PERIOD = 1.0
"""Seconds for which an attempt is held at least, however short the delay."""

_logger = logging.getLogger(__name__)


class BoundedBatchProcessor(SpanProcessor):
    """Hands batches of finished spans to an exporter; `on_end` costs a lock and never waits for the exporter."""

    def __init__(
        self,
        exporter: SpanExporter,
        counters: SpanCounters,
        settings: BatchSettings | None = None,
        *,
        shutdown_timeout: float = 2.0,
    ) -> None:
        """`shutdown_timeout` is seconds."""
        self._exporter = exporter
        self._counters = counters
        self._settings = settings or BatchSettings()
        self._shutdown_timeout = shutdown_timeout
        self._waiting = WaitingSpans(self._settings.max_queue_size)
        self._report = LossReport(counters)
        self._period = max(self._settings.schedule_delay, _SHORTEST_PERIOD)
        self._period_ends = time.monotonic() + self._period
        self._changed = threading.Condition()
        self._exporting = 0
        self._flushing = False
        self._closed = False
        self._abandoned = False
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """A root is remembered, so that spans are known to be of its attempt."""
        if isinstance(span, RecordedSpan) and span.parent_span is None:
            with self._changed:
                self._waiting.begin(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Keeps `span`, or counts it as lost when there is no room or the processor is shut down."""
        if isinstance(span, RecordedSpan):  # which is always sampled
            trace_id = span.trace_id
        else:
            context = span.get_span_context()
            if context is None or not context.trace_flags.sampled:
                return
            trace_id = context.trace_id
        with self._changed:
            if self._closed:
                self._counters.lost["shutdown"] += 1
                return
            before = self._waiting.ready
            if lost := self._waiting.add(span, trace_id):
                self._counters.lost["queue_full"] += lost
            ready = self._waiting.ready
            if ready != before and (not before or ready >= self._settings.max_export_batch_size):
                self._changed.notify_all()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Waits until what has ended by now has been handed over; False when that took longer than the timeout."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            return self._changed.wait_for(
                lambda: not self._waiting.count and not self._exporting, min(timeout_millis, 30_000) / 1000
            )

    def shutdown(self) -> None:
        """Exports what waits within the deadline, then lets go of the rest, counted as lost."""
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
            self._counters.lost["shutdown"] += self._waiting.clear()
        closing = threading.Thread(target=self._exporter.shutdown, name="spans-shutdown", daemon=True)
        closing.start()
        closing.join(max(0.0, deadline - time.monotonic()))
        self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._counters.lost["shutdown"] += self._exporting
            self._exporting = 0
        self._report.say(time.monotonic(), last=True)

    def _work(self) -> None:
        token = attach(set_value(SUPPRESS, True))
        try:
            while (batch := self._next()) is not None:
                if batch:
                    self._hand_over(batch)
                self._report.say(time.monotonic())
        finally:
            detach(token)

    def _next(self) -> Sequence[ReadableSpan] | None:
        """The next batch, once it is full, the delay is over or somebody asks for it; None when all is done.

        Empty when nothing may leave for a period.
        """
        waiting = self._waiting
        with self._changed:
            if self._changed.wait_for(lambda: self._asked() or waiting.ready, self._period):
                self._changed.wait_for(
                    lambda: self._asked() or waiting.ready >= self._settings.max_export_batch_size,
                    self._settings.schedule_delay,
                )
            if self._asked():
                waiting.release_all()
            elif time.monotonic() >= self._period_ends:
                waiting.end_period()
                self._period_ends = time.monotonic() + self._period
            if self._abandoned or (self._closed and not waiting.count):
                return None
            batch = waiting.take(self._settings.max_export_batch_size)
            self._exporting = len(batch)
            self._flushing = self._flushing and waiting.count > 0
            self._changed.notify_all()
            return batch

    def _asked(self) -> bool:
        """Whether somebody wants everything to leave."""
        return self._closed or self._flushing

    def _hand_over(self, batch: Sequence[ReadableSpan]) -> None:
        rejected = self._counters.lost["rejected"]
        exported = self._export(batch)
        with self._changed:
            if not self._exporting:
                return  # given up by shutdown and counted there
            self._exporting = 0
            if exported:
                self._counters.exported += len(batch) - (self._counters.lost["rejected"] - rejected)
            else:
                self._counters.lost["export_failed"] += len(batch)
            self._changed.notify_all()

    def _export(self, batch: Sequence[ReadableSpan]) -> bool:
        try:
            return self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception:
            # Whatever somebody's exporter raises must not end the thread that exports.
            _logger.exception("exporting %d spans failed", len(batch))
            return False
