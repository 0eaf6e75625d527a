"""What the webhook counts of itself: requests by what became of them, refused ones by reason, how long answers took."""

from podtrail.component import Metrics

_COMPONENT = "podtrail-webhook"
_CONTROLLER = "admission"
_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class WebhookTelemetry:
    """The webhook's instruments."""

    def __init__(self, metrics: Metrics) -> None:
        self._injected = metrics.counter(
            "trace_context_annotations_injected_total",
            "Admission requests by what became of the trace context (KEP-5915).",
            ("component", "controller", "resource_kind", "result"),
        )
        self._refused = metrics.counter(
            "podtrail_webhook_refused_requests_total", "Requests answered with an HTTP error, by reason.", ("reason",)
        )
        self._duration = metrics.histogram(
            "podtrail_webhook_request_duration_seconds",
            "From a request's head to its answer, in seconds.",
            _SECONDS,
        )
        self._reloads = metrics.counter(
            "podtrail_webhook_certificate_loads_total", "Certificates taken up, or not, by result.", ("result",)
        )
        self.requests_in_flight = 0
        self.bytes_in_flight = 0
        self.connections = 0
        for name, help, read in (
            ("requests_in_flight", "Requests being read or answered.", lambda: self.requests_in_flight),
            ("bytes_in_flight", "Bytes of requests being read or answered.", lambda: self.bytes_in_flight),
            ("connections", "Open connections.", lambda: self.connections),
        ):
            metrics.gauge(f"podtrail_webhook_{name}", help).read_from(read)

    def answered(self, resource_kind: str, result: str) -> None:
        """An AdmissionReview was answered."""
        self._injected.add(1, _COMPONENT, _CONTROLLER, resource_kind, result)

    def refused(self, reason: str) -> None:
        """A request was answered with an error, or its connection was."""
        self._refused.add(1, reason)

    def took(self, seconds: float) -> None:
        """An AdmissionReview was answered after so many seconds."""
        self._duration.observe(seconds)

    def certificate(self, result: str) -> None:
        """A certificate was taken up (`loaded`) or could not be (`failed`)."""
        self._reloads.add(1, result)
