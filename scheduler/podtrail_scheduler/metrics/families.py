"""Counters, gauges and histograms that cost little to write; prometheus-client reads them when it is asked for them.

They belong to one thread, as the scheduler does. Label values are given in the order of the labels.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from podtrail_scheduler.objects.durations import SECOND

Values = tuple[str, ...]
Read = Callable[[], Mapping[Values, float]]
"""The values of a metric that somebody else keeps, by label values."""


def exponential_buckets(start: float, factor: float, number: int) -> tuple[float, ...]:
    """Upper bounds that grow by `factor`."""
    return tuple(accumulate([start] + [factor] * (number - 1), lambda bound, by: bound * by))


class CounterVec:
    """A counter; its name ends in `_total`."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help, labels
        self.values: dict[Values, float] = {} if labels else {(): 0}

    def inc(self, *labels: str) -> None:
        """Counts one more."""
        self.values[labels] = self.values.get(labels, 0) + 1

    def collect(self) -> Iterable[Metric]:
        """The family as it is now."""
        yield _counter(self.name, self.help, self.labels, self.values)


class GaugeVec:
    """A gauge."""

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self.name, self.help, self.labels = name, help, labels
        self.values: dict[Values, float] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Changes it by `amount`."""
        self.values[labels] = self.values.get(labels, 0) + amount

    def collect(self) -> Iterable[Metric]:
        """The family as it is now."""
        yield _gauge(self.name, self.help, self.labels, self.values)


class ReadVec:
    """A counter (the name ends in `_total`) or gauge whose values are read where they are kept."""

    def __init__(self, name: str, help: str, labels: Sequence[str], read: Read) -> None:
        self._make = _counter if name.endswith("_total") else _gauge
        self.name, self.help, self.labels = name, help, labels
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The family as it is now."""
        yield self._make(self.name, self.help, self.labels, self._read())


class HistogramVec:
    """How often values fell into which bucket."""

    def __init__(self, name: str, help: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._bounds = tuple(buckets)
        self._counts: dict[Values, list[int]] = {}
        self._sums: dict[Values, float] = {}
        if not labels:
            self._first(())

    def observe(self, value: float, *labels: str) -> None:
        """Counts `value`."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._first(labels)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def observe_duration(self, nanoseconds: int, *labels: str) -> None:
        """Counts a length of time, in seconds."""
        self.observe(nanoseconds / SECOND, *labels)

    def _first(self, labels: Values) -> list[int]:
        self._sums[labels] = 0.0
        counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        return counts

    def collect(self) -> Iterable[Metric]:
        """The family as it is now."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        names = [*(repr(bound).removesuffix(".0") for bound in self._bounds), "+Inf"]
        for labels, counts in sorted(self._counts.items()):
            family.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), self._sums[labels])
        yield family


Family = CounterVec | GaugeVec | ReadVec | HistogramVec


def _counter(name: str, help: str, labels: Sequence[str], values: Mapping[Values, float]) -> Metric:
    family = CounterMetricFamily(name.removesuffix("_total"), help, labels=labels)
    for each, value in sorted(values.items()):
        family.add_metric(each, value)
    return family


def _gauge(name: str, help: str, labels: Sequence[str], values: Mapping[Values, float]) -> Metric:
    family = GaugeMetricFamily(name, help, labels=labels)
    for each, value in sorted(values.items()):
        family.add_metric(each, value)
    return family
