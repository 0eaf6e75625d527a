"""What goes in and out of Pod annotations in a whole run; the rows of KEP-5927's table are in test_kep_5927.py."""

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, TracerProvider
from podtrail_instrumentation import TracingConfiguration, provider_around
from podtrail_instrumentation.provider import sampler
from podtrail_scheduler import Simulation, Workload
from podtrail_scheduler.cluster.simulated.identifiers import SeededIdGenerator
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor

KEY = "tracing.k8s.io/traceparent"
WORKLOAD: dict[str, object] = {
    "length": "30s",
    "nodes": [{"name": "node", "count": 2, "allocatable": {"cpu": 64, "memory": "64Gi", "pods": 99}}],
    "pods": [{"name": "web"}],
    "faults": {},
    "api_server": {"spans": False},
}


class Cluster:
    """A run, and the traceparents of its Pods."""

    def __init__(self, provider: TracerProvider | None, **changes: object) -> None:
        self.simulation = Simulation(Workload.model_validate({**WORKLOAD, **changes}), provider)
        self.attempts = sum(moment.attempt is not None for moment in self.simulation.run())

    def traceparents(self) -> dict[str, str]:
        pods = self.simulation.api_server.pods.values()
        return {pod.name: pod.annotations.get(KEY, "") for pod in pods if pod.node_name}


@pytest.fixture
def collector() -> CollectingSpanProcessor:
    return CollectingSpanProcessor()


def provider(collector: CollectingSpanProcessor, rate: int) -> TracerProvider:
    configuration = TracingConfiguration(sampling_rate_per_million=rate)
    ids = SeededIdGenerator("test")
    return provider_around(collector, Resource({}), sampler=sampler(configuration), id_generator=ids)


def roots(spans: list[ReadableSpan]) -> list[ReadableSpan]:
    return [span for span in spans if span.name == "SchedulePod"]


def test_gate_off_makes_no_span_and_touches_no_annotation() -> None:
    cluster = Cluster(None)
    assert cluster.attempts > 20
    assert all(cluster.traceparents().values())
    counters = cluster.simulation.scheduler.propagation["default-scheduler"]
    assert not counters.extracted
    assert not counters.injected


def test_a_rate_records_some_attempts_whole_and_others_not_at_all(collector: CollectingSpanProcessor) -> None:
    cluster = Cluster(provider(collector, 500_000), length="2m")
    spans = collector.drain(2**63)
    assert 0.3 < len(roots(spans)) / cluster.attempts < 0.7
    assert {span.context.trace_id for span in spans} == {root.context.trace_id for root in roots(spans)}
    sampled = [value for value in cluster.traceparents().values() if int(value[-2:], 16) & 1]
    assert len(sampled) == len(roots(spans))


def test_untraced_creations_leave_no_link(collector: CollectingSpanProcessor) -> None:
    Cluster(provider(collector, 1_000_000), api_server={"traced": 0})
    assert not any(root.links for root in roots(collector.drain(2**63)))


def test_a_refused_binding_writes_nothing(collector: CollectingSpanProcessor) -> None:
    cluster = Cluster(provider(collector, 1_000_000), faults={"bind_refused": [{}]})
    spans = roots(collector.drain(2**63))
    pods = cluster.simulation.api_server.pods.values()
    creations = {f"00-{link.context.trace_id:032x}" for root in spans for link in root.links}
    assert {pod.annotations[KEY][:35] for pod in pods} >= creations
    assert cluster.traceparents() == {}


def test_the_pretend_api_server_leaves_the_spans_that_links_lead_to(collector: CollectingSpanProcessor) -> None:
    workload = Workload.model_validate({**WORKLOAD, "api_server": {}})
    traced = provider(collector, 1_000_000)
    list(Simulation(workload, traced, creator_provider=traced).run())
    spans = collector.drain(2**63)
    creations = {span.context.span_id for span in spans if span.kind is SpanKind.SERVER}
    assert {link.context.span_id for root in roots(spans) for link in root.links} <= creations
