"""What `target_rate` shows in metrics: its keys with their probabilities and rates, as many as there are then."""

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

from podtrail.component import Metrics
from podtrail.component.metrics import LabelValues
from podtrail_processors.tail_sampling.voting.throughput import Flow, Throughput

_PREFIX = "otelcol_processor_tail_sampling_target_rate_"


class _Shown:
    """Reads one figure of all keys. Shards of one sampler add up; what is gone after a reload is no longer shown."""

    def __init__(self, figure: Callable[[Flow], float], combine: Callable[[float, float], float]) -> None:
        self.of: WeakKeyDictionary[Throughput, str] = WeakKeyDictionary()
        self._figure = figure
        self._combine = combine

    def __call__(self) -> Mapping[LabelValues, float]:
        values: dict[LabelValues, float] = {}
        for throughput, policy in self.of.items():
            for flow in throughput.flows.values():
                labels = (policy, flow.label)
                value = self._figure(flow)
                values[labels] = self._combine(values[labels], value) if labels in values else value
        return values


def publish(throughput: Throughput, unit: str, metrics: Metrics, policy: str) -> Callable[[], None]:
    """Show the keys of a policy; return what counts a trace whose key was not told apart."""
    for name, help, figure, combine in (
        ("probability", "With what probability traces of a key are kept.", _probability, min),
        (f"seen_{unit}_per_second", "What comes of a key, smoothed.", _seen, _sum),
        (f"kept_{unit}_per_second", "What is kept of a key, smoothed.", _kept, _sum),
    ):
        gauge = metrics.gauge(_PREFIX + name, help, ("policy", "key"), combine)
        if not gauge.sources:
            gauge.read_all_from(_Shown(figure, combine))
        (shown,) = gauge.sources.values()
        assert isinstance(shown, _Shown)
        shown.of[throughput] = policy
    folded = metrics.counter(
        _PREFIX + "keys_folded", "Traces that share a probability with others, for there are max_keys.", ("policy",)
    )
    return lambda: folded.add(1, policy)


def _probability(flow: Flow) -> float:
    return flow.probability


def _seen(flow: Flow) -> float:
    return flow.demand.total()


def _kept(flow: Flow) -> float:
    return flow.kept_rate


def _sum(one: float, other: float) -> float:
    return one + other
