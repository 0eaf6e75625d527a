"""The sampler's own metrics, under the Collector's names."""

from collections.abc import Callable, Collection

from podtrail.component import Metrics
from podtrail.config.feature_gates import COUNT_BYTES_SAMPLED, COUNT_SPANS_SAMPLED
from podtrail.otlp import Decision

PREFIX = "otelcol_processor_tail_sampling_"
_LATENCIES = (
    1.0,
    2.0,
    5.0,
    10.0,
    25.0,
    50.0,
    75.0,
    100.0,
    150.0,
    200.0,
    300.0,
    400.0,
    500.0,
    750.0,
    1000.0,
    2000.0,
    3000.0,
    4000.0,
    5000.0,
    10000.0,
    20000.0,
    30000.0,
    50000.0,
)
_AGES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)


def sampled(decision: Decision) -> str:
    """Return the value of the label `sampled`."""
    return "true" if decision == "sampled" else "false"


class Instruments:
    """The instruments, made once. Spans and traces are counted, ages are whole seconds."""

    def __init__(self, metrics: Metrics, traces_held: Callable[[], float], gates: Collection[str]) -> None:
        self.new_traces = metrics.counter(PREFIX + "new_trace_id_received", "Traces of which a first span came.")
        self.decided = metrics.counter(
            PREFIX + "global_count_traces_sampled", "Traces decided, by decision.", ("sampled", "decision")
        )
        self.votes = metrics.counter(
            PREFIX + "count_traces_sampled", "Votes of the policies.", ("policy", "sampled", "decision")
        )
        self.voted_spans = self.voted_bytes = None
        if COUNT_SPANS_SAMPLED in gates:
            self.voted_spans = metrics.counter(
                PREFIX + "count_spans_sampled", "Spans of traces voted on.", ("policy", "sampled", "decision")
            )
        if COUNT_BYTES_SAMPLED in gates:
            self.voted_bytes = metrics.counter(
                PREFIX + "count_bytes_sampled", "Bytes of traces voted on.", ("policy", "sampled", "decision")
            )
        self.unparseable = metrics.counter(
            PREFIX + "count_spans_with_unparseable_tracestate",
            "Kept spans into whose trace state no threshold could be written.",
        )
        self.executions = metrics.counter(
            PREFIX + "sampling_policy_execution_count", "How often a policy was asked.", ("policy",)
        )
        self.execution_times = metrics.counter(
            PREFIX + "sampling_policy_execution_time_sum", "How long a policy took, in microseconds.", ("policy",)
        )
        self.timer_latency = metrics.histogram(
            PREFIX + "sampling_decision_timer_latency",
            "How long the decisions due in a second took together, in milliseconds.",
            _LATENCIES,
        )
        self.errors = metrics.counter(
            PREFIX + "sampling_policy_evaluation_error", "How often a policy had no vote because it failed."
        )
        self.from_cache = metrics.counter(
            PREFIX + "early_releases_from_cache_decision",
            "Late spans that followed a remembered decision.",
            ("sampled",),
        )
        self.too_early = metrics.counter(
            PREFIX + "sampling_trace_dropped_too_early", "Traces that had been evicted when they were to be decided."
        )
        self.too_large = metrics.counter(PREFIX + "traces_dropped_too_large", "Traces over maximum_trace_size_bytes.")
        self.decided_early = metrics.counter(
            PREFIX + "traces_decided_early", "Traces decided before their time to stay within maximum_held_mib."
        )
        self.late_age = metrics.histogram(
            PREFIX + "sampling_late_span_age", "From the decision to the arrival of a late span, in seconds.", _AGES
        )
        self.removal_age = metrics.histogram(
            PREFIX + "sampling_trace_removal_age", "From a trace's arrival to its removal, in seconds.", _AGES
        )
        metrics.gauge(PREFIX + "sampling_traces_on_memory", "Traces in memory.").read_from(traces_held)

    def voted(self, label: str, vote: Decision | None, traces: int, spans: int, size: int) -> None:
        """Count what a policy said about so many traces; None: nothing, for it failed. `size` in bytes."""
        self.executions.add(traces, label)
        if vote is None:
            self.errors.add(traces)
            return
        self.votes.add(traces, label, sampled(vote), vote)
        if self.voted_spans:
            self.voted_spans.add(spans, label, sampled(vote), vote)
        if self.voted_bytes:
            self.voted_bytes.add(size, label, sampled(vote), vote)
