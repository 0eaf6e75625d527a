"""A pipeline's own metrics: plain numbers, read by whoever serves or asserts them.

Names that begin with `otelcol_` are the Collector's, or formed as it forms them (`otelcol_receiver_accepted_spans`, no
suffix); all others are as Prometheus wants them: base units, `_total` at the end of what only grows. Label values are
given in the order in which the labels were declared. Everything is touched on one event loop: no locks.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import NamedTuple

LabelValues = tuple[str, ...]


@dataclass(slots=True)
class Counter:
    """A sum that only grows, one a combination of label values."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: dict[LabelValues, float] = field(default_factory=dict)

    def add(self, amount: float, *labels: str) -> None:
        """Add to the sum of these label values."""
        self.values[labels] = self.values.get(labels, 0) + amount


@dataclass(slots=True)
class Gauge:
    """A value read when somebody asks; a name that ends in `_total` says that it only grows."""

    name: str
    help: str
    labels: tuple[str, ...]
    readers: dict[LabelValues, Callable[[], float]] = field(default_factory=dict)
    sources: dict[LabelValues, Callable[[], Mapping[LabelValues, float]]] = field(default_factory=dict)
    combine: Callable[[float, float], float] = add
    """Makes one value of those of several parts (`Metrics.part`) that have the same label values."""
    parts: "dict[int, Gauge]" = field(default_factory=dict)
    owned: "dict[int, Gauge]" = field(default_factory=dict)
    """What components show while they run (`Metrics.owned`): who came last is believed."""

    def read_from(self, reader: Callable[[], float], *labels: str) -> None:
        """Have `reader` asked for the value of these label values."""
        self.readers[labels] = reader

    def read_all_from(self, source: Callable[[], Mapping[LabelValues, float]], *whose: str) -> None:
        """Have `source` asked for label values and their values, where they are not known beforehand.

        `whose`: the label values that all of these begin with; another source with the same takes its place.
        """
        self.sources[whose] = source

    def values(self) -> dict[LabelValues, float]:
        """Return the value of each combination of label values now."""
        values = {labels: read() for labels, read in self.readers.items()}
        for source in self.sources.values():
            values |= source()
        for owned in self.owned.values():
            values |= owned.values()
        for part in self.parts.values():
            for labels, value in part.values().items():
                values[labels] = self.combine(values[labels], value) if labels in values else value
        return values


class Exemplar(NamedTuple):
    """One observation of many, with the trace that it was made on."""

    trace_id: bytes
    value: float
    moment: int
    """When it was, in nanoseconds since the epoch."""


@dataclass(slots=True)
class Histogram:
    """Counts of observations by upper bound (inclusive; a last bucket takes the rest)."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    counts: dict[LabelValues, list[int]] = field(default_factory=dict)
    sums: dict[LabelValues, float] = field(default_factory=dict)
    exemplars: dict[LabelValues, list[Exemplar | None]] = field(default_factory=dict)
    """The last one of each bucket."""

    def observe(self, value: float, *labels: str, times: int = 1, trace_id: bytes = b"", moment: int = 0) -> None:
        """Count `times` observations of `value`; with a `trace_id` it is the bucket's exemplar, from `moment` (ns)."""
        counts = self.counts.get(labels)
        if counts is None:
            counts = self.counts[labels] = [0] * (len(self.bounds) + 1)
        at = bisect_left(self.bounds, value)
        counts[at] += times
        if trace_id:
            latest = self.exemplars.setdefault(labels, [None] * len(counts))
            latest[at] = Exemplar(trace_id, value, moment)
        self.sums[labels] = self.sums.get(labels, 0.0) + value * times


Instrument = Counter | Gauge | Histogram


class Metrics:
    """All instruments of one running service (or one replay), by name."""

    def __init__(self) -> None:
        self._instruments: dict[str, Instrument] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        """Return the counter of that name, made on first use."""
        found = self._instruments.setdefault(name, Counter(name, help, tuple(labels)))
        assert isinstance(found, Counter)
        return found

    def gauge(
        self, name: str, help: str, labels: Sequence[str] = (), combine: Callable[[float, float], float] = add
    ) -> Gauge:
        """Return the gauge of that name, made on first use; `combine`: two parts' values make this one (`part`)."""
        found = self._instruments.setdefault(name, Gauge(name, help, tuple(labels), combine=combine))
        assert isinstance(found, Gauge)
        return found

    def histogram(
        self,
        name: str,
        help: str,
        bounds: Sequence[float],
        labels: Sequence[str] = (),
    ) -> Histogram:
        """Return the histogram of that name, made on first use."""
        found = self._instruments.setdefault(name, Histogram(name, help, tuple(labels), tuple(bounds)))
        assert isinstance(found, Histogram)
        return found

    def part(self) -> "MetricsPart":
        """Return metrics for one of several instances of a component: their gauges make one value."""
        return MetricsPart(self)

    def owned(self) -> "OwnedMetrics":
        """Return metrics for a component that may be gone before the service is: their gauges go with it."""
        return OwnedMetrics(self)

    def __iter__(self) -> Iterator[Instrument]:
        return iter(self._instruments.values())

    def snapshot(self) -> Mapping[str, Mapping[str, float]]:
        """Return `{name: {"label=value,…" sorted by label: value}}`; a histogram shows as `<name>_count` and `_sum`."""
        out: dict[str, dict[str, float]] = {}
        for instrument in self:
            match instrument:
                case Counter():
                    rows = [("", instrument.values)]
                case Gauge():
                    rows = [("", instrument.values())]
                case Histogram():
                    totals = {labels: float(sum(counts)) for labels, counts in instrument.counts.items()}
                    rows = [("_count", totals), ("_sum", instrument.sums)]
            for suffix, values in rows:
                shown = out.setdefault(instrument.name + suffix, {})
                for labels, value in values.items():
                    shown[",".join(sorted(f"{k}={v}" for k, v in zip(instrument.labels, labels, strict=True)))] = value
        return out


class _GaugesApart(Metrics):
    """Metrics whose counters and histograms are everybody's, while gauges are their own."""

    def __init__(self, whole: Metrics) -> None:
        super().__init__()
        self._whole = whole

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        """Return the counter of that name, the whole's."""
        return self._whole.counter(name, help, labels)

    def histogram(self, name: str, help: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        """Return the histogram of that name, the whole's."""
        return self._whole.histogram(name, help, bounds, labels)

    def _in_whole(self, gauge: Gauge) -> Gauge:
        return self._whole.gauge(gauge.name, gauge.help, gauge.labels, gauge.combine)

    def _gauges(self) -> Iterator[tuple[Gauge, Gauge]]:
        """Yield each gauge with the one in the whole."""
        return ((one, self._in_whole(one)) for one in self if isinstance(one, Gauge))


class MetricsPart(_GaugesApart):
    """Metrics of one of several instances: its gauges make one value with those of the others."""

    def gauge(
        self, name: str, help: str, labels: Sequence[str] = (), combine: Callable[[float, float], float] = add
    ) -> Gauge:
        """Return the part's gauge of that name, which the whole's shows with those of other parts."""
        gauge = super().gauge(name, help, labels, combine)
        self._in_whole(gauge).parts[id(self)] = gauge
        return gauge

    def close(self) -> None:
        """Be gone: what its gauges show is shown no more."""
        for _, whole in self._gauges():
            whole.parts.pop(id(self), None)


class OwnedMetrics(_GaugesApart):
    """Metrics of a component: what its gauges show is shown from `show` to `hide`."""

    def __init__(self, whole: Metrics) -> None:
        """Show in `whole`, nothing yet."""
        super().__init__(whole)
        self._is_shown = False

    def gauge(
        self, name: str, help: str, labels: Sequence[str] = (), combine: Callable[[float, float], float] = add
    ) -> Gauge:
        """Return the component's gauge of that name."""
        gauge = super().gauge(name, help, labels, combine)
        if self._is_shown:
            self._in_whole(gauge).owned[id(self)] = gauge
        return gauge

    def show(self) -> None:
        """Show the gauges, in place of what others show of the same label values."""
        if self._is_shown:
            return
        self._is_shown = True
        for gauge, whole in self._gauges():
            whole.owned[id(self)] = gauge

    def hide(self) -> None:
        """Show them no more."""
        self._is_shown = False
        for _, whole in self._gauges():
            whole.owned.pop(id(self), None)
