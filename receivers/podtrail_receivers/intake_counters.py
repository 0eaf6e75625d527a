"""What receivers of OTLP count of requests as they read them."""

from podtrail.component import Context
from podtrail.otlp import Intake
from podtrail.otlp.signals import skipped_words

_CLIENTS = 100
"""Clients that have a label of their own: labels stay, addresses come and go."""
_LONGEST_NAME = 100


class IntakeCounters:
    """Counts spans that are invalid or have no duration, and requests that can't be read."""

    def __init__(self, context: Context) -> None:
        self._id = context.id
        self._log = context.log
        labels = ("receiver", "transport")
        self._rejected = context.metrics.counter(
            "podtrail_receiver_rejected_spans_total", "Invalid spans, rejected alone as a partial success.", labels
        )
        self._odd_times = context.metrics.counter(
            "podtrail_receiver_spans_without_duration_total",
            "Spans whose start or end is 0 or whose end comes first; they pass as they are.",
            labels,
        )
        self._failed = context.metrics.counter(
            "podtrail_receiver_failed_requests_total",
            "Requests whose spans could not be told: malformed, too large, cut off, from nobody who may send.",
            (*labels, "reason"),
        )
        self._others = context.metrics.counter(
            "podtrail_receiver_other_signal_requests_total",
            "Requests without spans that were skipped: of logs, metrics or profiles, or of no kind that OTLP has.",
            (*labels, "signal"),
        )
        self._handshakes = context.metrics.counter(
            "podtrail_receiver_failed_handshakes_total",
            "Connections over HTTP that ended before TLS was agreed on, by what kept it from that.",
            (*labels, "reason"),
        )
        self._limited = context.metrics.counter(
            "podtrail_receiver_limited_requests_total",
            f"Requests that were refused as too much of one client; those after the first {_CLIENTS} are `other`.",
            (*labels, "client", "limit"),
        )
        self._clients: set[str] = set()
        self._logged: set[str] = set()

    def read(self, transport: str, intake: Intake) -> None:
        """Count what was found in a request."""
        if intake.odd_times:
            self._odd_times.add(intake.odd_times, self._id, transport)
        if intake.rejected:
            self._rejected.add(intake.rejected, self._id, transport)

    def failed(self, transport: str, reason: str) -> None:
        """Count a request that could not be read."""
        self._failed.add(1, self._id, transport, reason)

    def other_signal(self, transport: str, signal: str, place: str = "") -> None:
        """Count a request of another signal. The first of each is logged, with its place where it has one."""
        if signal not in self._logged:
            self._logged.add(signal)
            where = f"{place}: " if place else f"{transport}: "
            self._log.warning("%s%s; further ones are only counted", where, skipped_words(signal))
        self._others.add(1, self._id, transport, signal)

    def no_handshake(self, transport: str, reason: str) -> None:
        """Count a connection that was not agreed on."""
        self._handshakes.add(1, self._id, transport, reason)

    def limited(self, transport: str, client: str, limit: str) -> None:
        """Count a request that a limit of its client has refused."""
        shown = client[:_LONGEST_NAME]
        if len(self._clients) < _CLIENTS:
            self._clients.add(shown)
        self._limited.add(1, self._id, transport, shown if shown in self._clients else "other", limit)
