"""The service's own metrics for Prometheus: the Collector's names, exact (no `_total` is added)."""

from collections.abc import Iterable
from contextlib import AsyncExitStack

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.registry import Collector

from podtrail.component import Counter, Gauge, Histogram, Metrics, StartError
from podtrail.transport.plain_http import served

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_GRACE = 0.5
"""Seconds that whoever is reading gets at the end."""


class _Exposed(Collector):
    """Shows `Metrics` as Prometheus families; of type unknown, the only one whose names get no suffix."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        for instrument in self._metrics:
            match instrument:
                case Counter():
                    yield _family(instrument, instrument.values)
                case Gauge():
                    yield _family(instrument, instrument.values())
                case Histogram():
                    yield _histogram(instrument)


def _family(instrument: Counter | Gauge, values: dict[tuple[str, ...], float]) -> Metric:
    family = UnknownMetricFamily(instrument.name, instrument.help, labels=instrument.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _histogram(instrument: Histogram) -> Metric:
    family = HistogramMetricFamily(instrument.name, instrument.help, labels=instrument.labels)
    bounds = [*map(str, instrument.bounds), "+Inf"]
    for labels, counts in instrument.counts.items():
        total, buckets = 0, []
        for bound, count in zip(bounds, counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        family.add_metric(labels, buckets, instrument.sums[labels])
    return family


def exposition(metrics: Metrics) -> bytes:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Exposed(metrics))
    return generate_latest(registry)


class MetricsServer:
    """Serves `/metrics`."""

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        self._metrics = metrics
        self._host, self._port = host, port
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "MetricsServer":
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        endpoint = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        runner = web.AppRunner(app, shutdown_timeout=_GRACE)
        try:
            await self._stack.enter_async_context(served(runner, endpoint))
        except StartError as error:
            raise StartError(f"service::telemetry::metrics: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _answer(self, _: web.Request) -> web.Response:
        return web.Response(body=exposition(self._metrics), headers={"Content-Type": CONTENT_TYPE})
