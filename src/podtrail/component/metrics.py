"""A pipeline's own metrics: plain numbers, read by whoever serves or asserts them.

Names are the Collector's, exact (`otelcol_receiver_accepted_spans`, no suffix added). Label values are given in the
order in which the labels were declared. Everything is touched on one event loop: no locks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
    """A value read when somebody asks."""

    name: str
    help: str
    labels: tuple[str, ...]
    readers: dict[LabelValues, Callable[[], float]] = field(default_factory=dict)
    source: Callable[[], Mapping[LabelValues, float]] | None = None

    def read_from(self, reader: Callable[[], float], *labels: str) -> None:
        """Have `reader` asked for the value of these label values."""
        self.readers[labels] = reader

    def read_all_from(self, source: Callable[[], Mapping[LabelValues, float]]) -> None:
        """Have `source` asked for label values and their values, where they are not known beforehand."""
        self.source = source

    def values(self) -> dict[LabelValues, float]:
        """Return the value of each combination of label values now."""
        values = {labels: read() for labels, read in self.readers.items()}
        return values | dict(self.source()) if self.source else values


@dataclass(slots=True)
class Histogram:
    """Counts of observations by upper bound (inclusive; a last bucket takes the rest)."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    counts: dict[LabelValues, list[int]] = field(default_factory=dict)
    sums: dict[LabelValues, float] = field(default_factory=dict)

    def observe(self, value: float, *labels: str, times: int = 1) -> None:
        """Count `times` observations of `value`."""
        counts = self.counts.get(labels)
        if counts is None:
            counts = self.counts[labels] = [0] * (len(self.bounds) + 1)
        at = 0
        for bound in self.bounds:
            if value <= bound:
                break
            at += 1
        counts[at] += times
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

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Gauge:
        """Return the gauge of that name, made on first use."""
        found = self._instruments.setdefault(name, Gauge(name, help, tuple(labels)))
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
