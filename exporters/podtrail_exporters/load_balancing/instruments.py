"""What the exporter counts, under the Collector's names where it has them."""

from collections.abc import Callable

from podtrail.component import Metrics

_MILLISECONDS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The Collector's bounds."""


class BalancingInstruments:
    """The counters of one exporter."""

    def __init__(self, metrics: Metrics, exporter: str, resolver: str) -> None:
        """Begin with nothing counted; `resolver`: the kind of it."""
        self._exporter = exporter
        self._resolver = resolver
        of_resolver, of_backend = ("exporter", "resolver"), ("exporter", "endpoint")
        self._resolutions = metrics.counter(
            "otelcol_loadbalancer_num_resolutions", "Resolutions of the backends.", (*of_resolver, "success")
        )
        self._updates = metrics.counter(
            "otelcol_loadbalancer_num_backend_updates", "Resolutions that gave other backends.", of_resolver
        )
        self._backends = metrics.gauge("otelcol_loadbalancer_num_backends", "Backends that there are.", of_resolver)
        self._latency = metrics.histogram(
            "otelcol_loadbalancer_backend_latency", "Milliseconds until a backend's answer.", _MILLISECONDS, of_backend
        )
        self._outcome = metrics.counter(
            "otelcol_loadbalancer_backend_outcome", "Requests to a backend.", (*of_backend, "success")
        )
        self._down = metrics.gauge("podtrail_loadbalancer_backends_down", "Backends that do not answer.", ("exporter",))
        self._remembered = metrics.gauge(
            "podtrail_loadbalancer_remembered_traces", "Traces whose backend is remembered.", ("exporter",)
        )
        self._forgotten = metrics.counter(
            "podtrail_loadbalancer_forgotten_traces_total",
            "Traces whose backend was forgotten before their grace was over: more than grace_traces.",
            ("exporter",),
        )
        self._moved = metrics.counter(
            "podtrail_loadbalancer_moved_spans_total",
            "Spans that their backend could not take and that went to the next: it was down, or removed.",
            ("exporter", "reason"),
        )
        self._forgotten.add(0, exporter)
        for reason in ("down", "removed"):
            self._moved.add(0, exporter, reason)

    def watch(self, backends: Callable[[], float], down: Callable[[], float], remembered: Callable[[], float]) -> None:
        """Have the gauges read from these."""
        self._backends.read_from(backends, self._exporter, self._resolver)
        self._down.read_from(down, self._exporter)
        self._remembered.read_from(remembered, self._exporter)

    def resolved(self, *, success: bool) -> None:
        """Count a resolution."""
        self._resolutions.add(1, self._exporter, self._resolver, _word(success))

    def updated(self) -> None:
        """Count a resolution that gave other backends."""
        self._updates.add(1, self._exporter, self._resolver)

    def answered(self, endpoint: str, milliseconds: float, *, success: bool) -> None:
        """Count a request to a backend."""
        self._latency.observe(milliseconds, self._exporter, endpoint)
        self._outcome.add(1, self._exporter, endpoint, _word(success))

    def moved(self, spans: int, *, removed: bool) -> None:
        """Count spans that went to another backend than was to have them."""
        self._moved.add(spans, self._exporter, "removed" if removed else "down")

    def forgotten(self, traces: int) -> None:
        """Count traces that were forgotten early."""
        self._forgotten.add(traces, self._exporter)

    def forget(self, endpoint: str) -> None:
        """Let go of what was counted of a backend that is gone: addresses of Pods come and go without end."""
        self._latency.counts.pop((self._exporter, endpoint), None)
        self._latency.sums.pop((self._exporter, endpoint), None)
        for success in (True, False):
            self._outcome.values.pop((self._exporter, endpoint, _word(success)), None)


def _word(success: bool) -> str:
    return "true" if success else "false"
