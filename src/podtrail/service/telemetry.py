"""The service's own metrics for Prometheus: names as they are, nothing added, in the format that is asked for."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.openmetrics.exposition import UNDERSCORES
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from podtrail.component import Counter, Gauge, Histogram, Metrics, StartError
from podtrail.transport.plain_http import served

_LOG: Final = logging.getLogger("podtrail")
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_GRACE = 0.5
"""Seconds that whoever is reading gets at the end."""
_SECOND = 1e9


class _Exposed(Collector):
    """Shows `Metrics` as Prometheus families."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        for instrument in self._metrics:
            match instrument:
                case Counter():
                    # What has no labels counts from 0: what is counted first would be no increase of what isn't there.
                    yield _family(instrument, instrument.values or ({} if instrument.labels else {(): 0}))
                case Gauge():
                    yield _family(instrument, instrument.values())
                case Histogram():
                    yield _histogram(instrument)


def kind_of(instrument: Counter | Gauge | Histogram) -> str:
    """Return the type that is shown: a counter without `_total`, as the Collector has them, is of none ("unknown")."""
    if isinstance(instrument, Histogram):
        return "histogram"
    if instrument.name.endswith("_total"):
        return "counter"
    return "unknown" if isinstance(instrument, Counter) else "gauge"


_FAMILIES: Final[Mapping[str, type[CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "unknown": UnknownMetricFamily,
}


def _family(instrument: Counter | Gauge, values: dict[tuple[str, ...], float]) -> Metric:
    family = _FAMILIES[kind_of(instrument)](instrument.name, instrument.help, labels=instrument.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _histogram(instrument: Histogram) -> Metric:
    family = HistogramMetricFamily(instrument.name, instrument.help, labels=instrument.labels)
    bounds = [*map(str, instrument.bounds), "+Inf"]
    for labels, counts in instrument.counts.items():
        total = 0
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        exemplars = instrument.exemplars.get(labels) or [None] * len(bounds)
        for bound, count, exemplar in zip(bounds, counts, exemplars, strict=True):
            total += count
            if exemplar is None:
                buckets.append((bound, float(total)))
            else:
                of_trace = {"trace_id": exemplar.trace_id.hex()}
                told = Exemplar(of_trace, exemplar.value, exemplar.moment / _SECOND)
                buckets.append((bound, float(total), told))
        family.add_metric(labels, buckets, instrument.sums[labels])
    return family


def exposition(metrics: Metrics, accept: str = "") -> tuple[bytes, str]:
    """Return all metrics, and their content type: OpenMetrics for whoever accepts it, who gets exemplars then."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Exposed(metrics))
    if "application/openmetrics-text" in accept:
        # Names are the same in both formats, whatever escaping is asked for: one series, not two.
        body: bytes = generate_openmetrics(registry, escaping=UNDERSCORES)  # type: ignore[no-untyped-call]
        return body, OPENMETRICS
    return generate_latest(registry), TEXT


class MetricsServer:
    """Serves `/metrics`."""

    def __init__(self, metrics: Metrics, host: str, port: int, *, setting: str = "service::telemetry::metrics") -> None:
        """`setting` is what sets the address, for the message if it can't be listened on."""
        self._metrics = metrics
        self._setting = setting
        self._host, self._port = host, port
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "MetricsServer":
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        endpoint = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        runner = web.AppRunner(app, shutdown_timeout=_GRACE)
        try:
            port = await self._stack.enter_async_context(served(runner, endpoint))
        except StartError as error:
            raise StartError(f"{self._setting}: {error}") from error
        if not self._port:
            _LOG.info("metrics on port %d of %s", port, self._host)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _answer(self, request: web.Request) -> web.Response:
        body, content_type = exposition(self._metrics, request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})
