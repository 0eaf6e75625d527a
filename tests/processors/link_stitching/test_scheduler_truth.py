"""The test of truth on the real scheduler: sampled to 5 % and shuffled, its stories are what it counted itself."""

import random
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.config.types import SECOND
from podtrail.testing import Run, replay

WORKLOAD = {"seed": 11, "length": "12m", "arrival_rate": 0.8}
JITTER = 4 * SECOND
CONFIG = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors:
  tail_sampling:
    decision_wait: 10s
    policies:
      - {name: share, type: probabilistic, probabilistic: {sampling_percentage: SHARE}}
  link_stitching: {reorder_wait: 10s}
exporters: {debug: {}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}
"""

Arrivals = Sequence[tuple[int, bytes]]


class Counted(NamedTuple):
    """An attempt as the scheduler counted it."""

    uid: str
    number: int


@cache
def recording() -> Arrivals:
    simulation = TracedSimulation(Workload.model_validate(WORKLOAD))
    return [(delivery.now, request) for delivery in simulation.run() for request in delivery.requests]


@cache
def truth() -> dict[str, Counted]:
    """Return what the scheduler wrote on its roots, by span id."""
    return {
        span.span_id.hex(): Counted(attributes["k8s.pod.uid"].string_value, attributes["scheduler.attempts"].int_value)
        for _, raw in recording()
        for resource_spans in ExportTraceServiceRequest.FromString(raw).resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
        if span.name == "SchedulePod"
        for attributes in [{pair.key: pair.value for pair in span.attributes}]
    }


def shuffled(arrivals: Arrivals, seed: int) -> Arrivals:
    """Return the spans one by one with delays of their own, without the scheduler's own count."""
    rng = random.Random(seed)
    out = []
    for now, raw in arrivals:
        request = ExportTraceServiceRequest.FromString(raw)
        for resource_spans in request.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    single = ExportTraceServiceRequest()
                    resource = single.resource_spans.add(resource=resource_spans.resource)
                    kept = [pair for pair in span.attributes if pair.key != "scheduler.attempts"]
                    copy = resource.scope_spans.add(scope=scope_spans.scope).spans.add()
                    copy.CopyFrom(span)
                    del copy.attributes[:]
                    copy.attributes.extend(kept)
                    out.append((now + rng.randrange(JITTER), single.SerializeToString()))
    return sorted(out)


def check(run: Run, at_least: int) -> None:
    counted = truth()
    by_count = {attempt: span_id for span_id, attempt in counted.items()}
    roots = [exported.span for exported in run.exported["debug"] if exported.span.name == "SchedulePod"]
    assert len(roots) >= at_least
    for root in roots:
        uid, number = counted[root.span_id.hex()]
        assert root.attributes["podtrail.attempt.number"] == number
        previous = [link for link in root.links if link.attributes.get("podtrail.link.type") == "previous-attempt"]
        assert [link.span_id.hex() for link in previous] == ([by_count[Counted(uid, number - 1)]] if number > 1 else [])
        for link in previous:
            assert link.attributes["podtrail.link.resolved"] is (link.trace_id.hex() in run.kept)


def test_the_recording_is_worth_the_test() -> None:
    assert len(truth()) > 300
    assert max(attempt.number for attempt in truth().values()) > 10
    assert len(set(truth().values())) == len(truth())


def test_with_95_percent_sampled_out_and_arrivals_shuffled_the_numbers_are_the_schedulers() -> None:
    run = replay(CONFIG.replace("SHARE", "5"), shuffled(recording(), 5))
    check(run, at_least=10)


def test_with_half_sampled_out_each_kept_neighbour_is_told_of_the_next() -> None:
    run = replay(CONFIG.replace("SHARE", "50"), shuffled(recording(), 6))
    check(run, at_least=100)
    spans = [exported.span for exported in run.exported["debug"]]
    told = {
        ((span.parent_span_id if span.name == "podtrail.amendment" else span.span_id).hex(), link.span_id.hex())
        for span in spans
        for link in span.links
        if link.attributes.get("podtrail.link.type") == "next-attempt"
    }
    kept = {span.span_id.hex(): truth()[span.span_id.hex()] for span in spans if span.name == "SchedulePod"}
    by_count = {attempt: span_id for span_id, attempt in kept.items()}
    assert told == {
        (span_id, by_count[Counted(uid, number + 1)])
        for span_id, (uid, number) in kept.items()
        if Counted(uid, number + 1) in by_count
    }
