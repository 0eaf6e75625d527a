"""How every span and every decision that was offered to an exporter ended, once each."""

import logging

from podtrail.component import Ledger, Metrics, Permanent, ReadAgain, Retryable
from podtrail.pipeline.sending.overflow import Overflow, in_words

_LABELS = ("exporter",)


class DeliveryLedger:
    """Enters deliveries of one exporter in the ledgers of its pipelines, in metrics and in the log."""

    def __init__(
        self, exporter_id: str, metrics: Metrics, log: logging.LoggerAdapter[logging.Logger], remedy: str
    ) -> None:
        """Keep the ledger of an exporter; `remedy`: what its users can do when its queue is full."""
        self._id = exporter_id
        self._log = log
        self._sent = metrics.counter("otelcol_exporter_sent_spans", "Spans delivered.", _LABELS)
        self._failed = metrics.counter("otelcol_exporter_send_failed_spans", "Spans given up or rejected.", _LABELS)
        self._not_enqueued = metrics.counter(
            "otelcol_exporter_enqueue_failed_spans", "Spans that did not fit into the queue.", _LABELS
        )
        self._lost_decisions = metrics.counter(
            "podtrail_dropped_decisions_total", "A sampler's decisions lost, by reason.", ("exporter", "reason")
        )
        for counter in (self._sent, self._failed, self._not_enqueued):
            counter.add(0, exporter_id)
        self._recovered = metrics.counter(
            "otelcol_exporter_queue_recovered_spans", "Spans that were in a persistent queue at the start.", _LABELS
        )
        self._failing = False
        self._unreadable = False
        self._overflow = Overflow(log, remedy)
        self._cut_off = 0
        self._decisions_cut_off = 0

    def delivered(self, ledger: Ledger, spans: int, rejected: int) -> None:
        """Enter an answer: the other side has taken all but `rejected` spans (never more than were sent)."""
        rejected = min(max(rejected, 0), spans)
        ledger.delivered += spans - rejected
        ledger.rejected += rejected
        self._sent.add(spans - rejected, self._id)
        if rejected:
            self._failed.add(rejected, self._id)
        if self._failing:
            self._failing = False
            self._log.info("delivers again")

    def trying_again(self, error: Retryable, delay: float) -> None:
        """Log a failed try that is repeated after `delay` seconds: an outage's first as a warning, others as debug."""
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing = True
        self._log.log(level, "cannot deliver, trying again in %.1f s: %s", delay, error)

    def gave_up(self, ledger: Ledger, spans: int, decisions: int, error: Retryable | Permanent) -> None:
        """Enter what was given up."""
        if isinstance(error, ReadAgain):
            self._lose(ledger, spans, decisions, "transaction_aborted")
            self._log.debug("dropped %s (transaction_aborted): %s", in_words(spans, decisions), error)
            return
        reason = "permanent" if isinstance(error, Permanent) else "retries_exhausted"
        self._lose(ledger, spans, decisions, reason)
        self._log.error("dropped %s (%s): %s", in_words(spans, decisions), reason, error)

    def too_large(self, ledger: Ledger, spans: int, decisions: int, size: int) -> None:
        """Enter what no request can carry."""
        self._lose(ledger, spans, decisions, "too_large")
        lost = in_words(spans, decisions)
        self._log.error("dropped %s (too_large): %d bytes are more than a request can carry", lost, size)

    def shut_down(self, ledger: Ledger, spans: int, decisions: int) -> None:
        """Enter what was still here at the end, or came after it."""
        self._lose(ledger, spans, decisions, "shutdown")
        self._cut_off += spans
        self._decisions_cut_off += decisions

    def close(self) -> None:
        """Tell what the end has cost."""
        self._overflow.close()
        if self._cut_off or self._decisions_cut_off:
            lost = in_words(self._cut_off, self._decisions_cut_off)
            self._log.warning("dropped %s (shutdown): not delivered within the time to stop", lost)
            self._cut_off = self._decisions_cut_off = 0

    def recovered(self, spans: int) -> None:
        """Tell of what was on disk at the start."""
        self._recovered.add(spans, self._id)
        if spans:
            self._log.info("sends %s that were in its queue when podtrail ended", in_words(spans, 0))

    def stays(self, spans: int) -> None:
        """Tell of what is on disk at the end."""
        if spans:
            told = "%s stay in its queue on disk, and are sent when it starts with this sending_queue::storage again"
            self._log.info(told, in_words(spans, 0))

    def unreadable(self, reason: str) -> None:
        """Tell of what can't be read from the disk now; it is tried again."""
        if not self._unreadable:
            self._log.error("cannot read its queue, trying again: %s", reason)
        self._unreadable = True

    def damaged(self, ledger: Ledger, spans: int, reason: str) -> None:
        """Enter what can't be read from the disk any more."""
        self._lose(ledger, spans, 0, "damaged")
        self._log.error("dropped %s (damaged): %s", in_words(spans, 0), reason)

    def did_not_fit(self, ledger: Ledger, spans: int, decisions: int, failing: str | None = None) -> None:
        """Enter what found the queue full and is lost; `failing`: why a persistent one can write nothing."""
        ledger.drop("queue_full", spans)
        self._not_enqueued.add(spans, self._id)
        self._drop_decisions(decisions, "queue_full")
        self._overflow.lost(spans, decisions, failing)

    def refused(self, spans: int, failing: str | None = None) -> None:
        """Count spans that were not taken for want of room: their sender keeps them."""
        self._not_enqueued.add(spans, self._id)
        self._overflow.refused(spans, failing)

    def _lose(self, ledger: Ledger, spans: int, decisions: int, reason: str) -> None:
        ledger.drop(reason, spans)
        self._failed.add(spans, self._id)
        self._drop_decisions(decisions, reason)

    def _drop_decisions(self, decisions: int, reason: str) -> None:
        if decisions:
            self._lost_decisions.add(decisions, self._id, reason)
