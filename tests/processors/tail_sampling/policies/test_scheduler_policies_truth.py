"""The scheduler policies on what the real scheduler sends: they say what it counted itself."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import pytest
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.otlp import Attempt, attempts_in, read_rejections, read_request, split
from podtrail.testing import Run, replay

WORKLOAD = {"seed": 11, "length": "12m", "arrival_rate": 0.8}
CONFIG = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors: {tail_sampling: {decision_wait: 10s, policies: [POLICIES]}}
exporters: {debug: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
"""


@cache
def recording() -> Sequence[tuple[int, bytes]]:
    simulation = TracedSimulation(Workload.model_validate(WORKLOAD))
    return [(delivery.now, request) for delivery in simulation.run() for request in delivery.requests]


@cache
def traces() -> Mapping[str, bytes]:
    """Return the spans of each trace, by its id in hex."""
    found: dict[str, bytes] = {}
    for _, request in recording():
        for group in read_request(request).groups:
            found[group.trace_id.hex()] = found.get(group.trace_id.hex(), b"") + group.spans
    return found


@cache
def attempts() -> Mapping[str, Attempt]:
    """Return the attempts, by their trace's id."""
    return {trace: attempt for trace, spans in traces().items() for attempt in attempts_in(spans)}


def run(type: str, settings: str) -> Run:
    return replay(CONFIG.replace("POLICIES", f"{{name: p, type: {type}, {type}: {{{settings}}}}}"), recording())


def kept(type: str, settings: str) -> set[str]:
    return {line["traceId"] for line in run(type, settings).decisions if line["decision"] == "sampled"}


def test_attempts_and_recovered_count_as_the_scheduler_does() -> None:
    assert len(attempts()) > 500
    often = {trace for trace, attempt in attempts().items() if attempt.declared >= 4}
    late = {trace for trace, attempt in attempts().items() if attempt.declared > 1 and attempt.result == "Success"}
    assert often
    assert late
    assert kept("attempts", "min_attempts: 4") == often
    assert kept("recovered", "") == late


def test_queue_wait_keeps_what_waited() -> None:
    waits = sorted(attempt.queue_wait or 0 for attempt in attempts().values())
    middle = waits[len(waits) // 2] // 1_000_000 + 1
    waited = {trace for trace, attempt in attempts().items() if (attempt.queue_wait or 0) > middle * 1_000_000}
    assert kept("queue_wait", f"threshold: {middle}ms") == waited


@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "TaintToleration", "NodeAffinity"])
def test_rejected_by_keeps_what_the_plugin_refused(plugin: str) -> None:
    refused = Counter[str]()
    for trace in attempts():
        for span in split(traces()[trace]):
            refused[trace] += sum(one.nodes or 0 for one in read_rejections(span) if one.plugin == plugin)
    expected = {trace for trace, nodes in refused.items() if nodes >= 2}
    assert kept("rejected_by", f"plugins: [{plugin}], min_nodes: 2") == expected


def test_new_reason_keeps_a_few_failures_of_many() -> None:
    told = [line for line in run("new_reason", "").decisions if line["decision"] == "sampled"]
    failed = sum(attempt.failed for attempt in attempts().values())
    assert 1 <= len(told) < failed / 5
    assert {attempts()[line["traceId"]].failed for line in told} == {True}
    assert len({line["reason"] for line in told}) == len(told)


def test_the_slowest_are_about_as_many_as_the_quantile_says() -> None:
    share = len(kept("latency_quantile", "quantile: 0.9, min_attempts: 50")) / len(attempts())
    assert 0.05 < share < 0.2
