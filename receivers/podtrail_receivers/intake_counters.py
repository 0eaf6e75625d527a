"""What receivers of OTLP count of requests as they read them."""

from podtrail.component import Context
from podtrail.otlp import Intake


class IntakeCounters:
    """Counts spans that are invalid or have no duration, and requests that can't be read."""

    def __init__(self, context: Context) -> None:
        self._id = context.id
        labels = ("receiver", "transport")
        self._rejected = context.metrics.counter(
            "podtrail_receiver_rejected_spans", "Invalid spans, rejected alone as a partial success.", labels
        )
        self._odd_times = context.metrics.counter(
            "podtrail_receiver_spans_without_duration",
            "Spans whose start or end is 0 or whose end comes first; they pass as they are.",
            labels,
        )
        self._failed = context.metrics.counter(
            "podtrail_receiver_failed_requests",
            "Requests whose spans could not be told: malformed, too large, cut off.",
            (*labels, "reason"),
        )

    def read(self, transport: str, intake: Intake) -> None:
        """Count what was found in a request."""
        if intake.odd_times:
            self._odd_times.add(intake.odd_times, self._id, transport)
        if intake.rejected:
            self._rejected.add(intake.rejected, self._id, transport)

    def failed(self, transport: str, reason: str) -> None:
        """Count a request that could not be read."""
        self._failed.add(1, self._id, transport, reason)
