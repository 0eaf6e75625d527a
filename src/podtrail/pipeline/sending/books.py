"""Where every span that was offered is booked, once."""

import logging

from podtrail.component import Account, Metrics, Permanent, Retryable
from podtrail.pipeline.sending.overflow import Overflow

_LABELS = ("exporter",)


class Books:
    """Accounts, metrics and log of one exporter's deliveries."""

    def __init__(
        self, exporter_id: str, metrics: Metrics, log: logging.LoggerAdapter[logging.Logger], remedy: str
    ) -> None:
        """Keep the books of an exporter; `remedy`: what its users can do when its queue is full."""
        self._id = exporter_id
        self._log = log
        self._sent = metrics.counter("otelcol_exporter_sent_spans", "Spans delivered.", _LABELS)
        self._failed = metrics.counter("otelcol_exporter_send_failed_spans", "Spans given up or rejected.", _LABELS)
        self._not_enqueued = metrics.counter(
            "otelcol_exporter_enqueue_failed_spans", "Spans that did not fit into the queue.", _LABELS
        )
        for counter in (self._sent, self._failed, self._not_enqueued):
            counter.add(0, exporter_id)
        self._failing = False
        self._overflow = Overflow(log, remedy)
        self._cut_off = 0

    def delivered(self, account: Account, spans: int, rejected: int) -> None:
        """Book an answer: the other side has taken all but `rejected` spans (never more than were sent)."""
        rejected = min(max(rejected, 0), spans)
        account.delivered += spans - rejected
        account.rejected += rejected
        self._sent.add(spans - rejected, self._id)
        if rejected:
            self._failed.add(rejected, self._id)
        if self._failing:
            self._failing = False
            self._log.info("delivers again")

    def trying_again(self, error: Retryable, delay: float) -> None:
        """Tell of a failed try that will be repeated: the first of an outage aloud, the others not."""
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing = True
        self._log.log(level, "cannot deliver, trying again in %.1f s: %s", delay, error)

    def gave_up(self, account: Account, spans: int, error: Retryable | Permanent) -> None:
        """Book spans that were given up."""
        reason = "permanent" if isinstance(error, Permanent) else "retries_exhausted"
        self._lose(account, spans, reason)
        self._log.error("dropped %d spans (%s): %s", spans, reason, error)

    def too_large(self, account: Account, spans: int, size: int) -> None:
        """Book spans that no request can carry."""
        self._lose(account, spans, "too_large")
        self._log.error("dropped %d spans (too_large): %d bytes are more than a request can carry", spans, size)

    def shut_down(self, account: Account, spans: int) -> None:
        """Book spans that were still here at the end, or came after it."""
        self._lose(account, spans, "shutdown")
        self._cut_off += spans

    def close(self) -> None:
        """Tell how many spans the end has cost."""
        self._overflow.close()
        if self._cut_off:
            self._log.warning("dropped %d spans (shutdown): not delivered within the time to stop", self._cut_off)
            self._cut_off = 0

    def did_not_fit(self, account: Account, spans: int) -> None:
        """Book spans that found the queue full and are lost."""
        account.drop("queue_full", spans)
        self._not_enqueued.add(spans, self._id)
        self._overflow.lost(spans)

    def refused(self, spans: int) -> None:
        """Book spans that were not taken because the queue is full: their sender keeps them."""
        self._not_enqueued.add(spans, self._id)
        self._overflow.refused(spans)

    def _lose(self, account: Account, spans: int, reason: str) -> None:
        account.drop(reason, spans)
        self._failed.add(spans, self._id)
