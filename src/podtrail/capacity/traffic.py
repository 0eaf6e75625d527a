"""What arrives and what is wanted of it, and what is spent on it: the questions that a plan answers."""

from typing import Final, NamedTuple

_RESTING_TRACE: Final = 2_200
"""Bytes that `linked_traces` counts for an attempt that rests, besides its spans."""


class Traffic(NamedTuple):
    """What schedulers send when they are busiest, and how much of it is kept."""

    pods_per_second: float
    """Pods that each cluster schedules."""
    clusters: int = 1
    schedulers: int = 3
    """Of each cluster, podtrail beside each. One of them leads, so each must be able to carry it alone."""
    attempts_per_pod: float = 1.0
    spans_per_attempt: float = 35.0
    other_spans: float = 0.0
    """Spans a second of each cluster that are of no attempt: API servers', kubelets', container runtimes'."""
    span_bytes: float = 168.0
    """Bytes of a span as OTLP encodes it, without resource and scope."""
    kept: float = 0.05
    """Share of the spans that leaves."""
    decision_wait: float = 30.0
    """Seconds for which a trace is held."""
    grace_period: float = 0.0
    """Seconds for which a trace that is not kept rests then, to be kept with those that it is linked with."""

    @property
    def cluster_spans(self) -> float:
        """Spans a second of one cluster."""
        return self.pods_per_second * self.attempts_per_pod * self.spans_per_attempt + self.other_spans

    @property
    def spans(self) -> float:
        """Spans a second of all clusters."""
        return self.cluster_spans * self.clusters

    @property
    def held(self) -> float:
        """Spans that are undecided at any time."""
        return self.spans * self.decision_wait

    def resting(self, spans: float) -> float:
        """Return the bytes that `linked_traces` counts for what rests of so many spans a second."""
        at_a_time = spans * (1 - self.kept) * self.grace_period
        return at_a_time * (self.span_bytes + _RESTING_TRACE / self.spans_per_attempt)


class Circumstances(NamedTuple):
    """What is provided, and for what."""

    utilization: float = 0.6
    """Share of a core that is planned with; the rest is for catching up and for peaks."""
    gateways: int = 0
    """So many are to share what comes; 0: as many as it takes, and `spare`."""
    spare: int = 1
    """Gateways that may be away without the others having more than they can carry."""
    outage: float = 3600.0
    """Seconds for which what comes next may be away without anything being lost."""
    retention: float = 86_400.0
    """Seconds for which Kafka keeps spans."""
    replication: int = 3
    """Copies that Kafka keeps of a partition."""
    broker_cores: float = 2.0
    """Cores of a broker."""
    growth: float = 4.0
    """Partitions for so many times the gateways of today: their number can't grow without moving traces."""
    speed: float = 1.0
    """How fast a core is; 1 as fast as the one that the figures were measured on."""
