"""Names, types and limits in vocabulary.json are those of podtrail-scheduler's spans; the tests in Go read it, too."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import get_current_span
from podtrail_instrumentation import (
    DEFAULT_PREFIX,
    PropagationCounters,
    SpanCounters,
    TracingConfiguration,
    extract_context,
    inject_span_context,
    shutdown,
    tracer_provider,
)
from podtrail_instrumentation.operators import subject, tracing
from podtrail_scheduler.objects import Node
from podtrail_scheduler.runtime import filtering, score_shares
from podtrail_scheduler.runtime.calling import PHASES

from tests.scheduler.bench import ROOMY, Bench, pod
from tests.scheduler.collector import Collector

TABLE: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[2] / "instrumentation" / "vocabulary.json").read_text(encoding="utf-8")
)


def type_of(value: AnyValue) -> str:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return f"{type_of(value.array_value.values[0])}[]" if value.array_value.values else "string[]"
    return str(kind).removesuffix("_value")


def check(attributes: Any, allowed: list[str]) -> None:
    each: KeyValue
    for each in attributes:
        key = "scheduler.score.plugin.*" if each.key.startswith("scheduler.score.plugin.") else each.key
        assert key in allowed
        assert TABLE["attributes"][key] == type_of(each.value), key


def described(span: Span) -> Mapping[str, Any]:
    name = "plugin: *" if span.name.startswith("plugin: ") else span.name
    found: Mapping[str, Any] = TABLE["phases"].get(name) or TABLE["spans"][name]
    return found


@pytest.fixture
def spans() -> Iterator[list[Span]]:
    """Those of a Pod that is bound, and of one that no node fits."""
    collector = Collector()
    configuration = TracingConfiguration(endpoint=collector.endpoint, sampling_rate_per_million=1_000_000)
    provider = tracer_provider(configuration, Resource({}), SpanCounters())
    bench = Bench(nodes=[Node(f"n{number}", allocatable=ROOMY) for number in range(12)], provider=provider)
    bench.create(pod("fits"))
    bench.create(pod("big", requests={"cpu": 100_000}))
    bench.step_until(lambda: len(bench.records) >= 2)
    shutdown(provider)
    yield collector.spans
    collector.stop()


def test_spans_have_the_attributes_events_and_kinds_of_the_table(spans: list[Span]) -> None:
    assert {"SchedulePod", "schedulingCycle", "filter", "score", "postFilter"} <= {span.name for span in spans}
    for span in spans:
        row = described(span)
        check(span.attributes, row["attributes"])
        if "kind" in row:
            assert Span.SpanKind.Name(span.kind) == f"SPAN_KIND_{row['kind'].upper()}"
        for event in span.events:
            assert event.name in row["events"]
            check(event.attributes, TABLE["events"][event.name])


def test_phases_and_limits_are_those_of_the_table() -> None:
    assert set(PHASES) == set(TABLE["phases"])
    limits = TABLE["limits"]
    assert limits["names of rejected nodes"] == filtering.NAMES_SHOWN
    assert (limits["scored nodes"], limits["scoring plugins"]) == (score_shares.MOST_NODES, score_shares.MOST_PLUGINS)


@pytest.mark.parametrize("case", TABLE["annotations"]["extract"], ids=json.dumps)
def test_annotations_are_read_as_the_table_says(case: Mapping[str, str]) -> None:
    counters = PropagationCounters("c", "c", "Pod")
    annotations = {DEFAULT_PREFIX + key: case[key] for key in ("traceparent", "tracestate") if key in case}
    span = get_current_span(extract_context(annotations, counters=counters)).get_span_context()
    assert counters.extracted == {case["result"]: 1}
    assert span.is_valid == (case["result"] == "success")
    if "state" in case:
        assert span.trace_state.to_header() == case["state"]


@pytest.mark.parametrize("case", TABLE["annotations"]["inject"], ids=json.dumps)
def test_annotations_are_written_as_the_table_says(case: Mapping[str, Any]) -> None:
    counters = PropagationCounters("c", "c", "Pod")
    given = {f"{DEFAULT_PREFIX}traceparent": case["span"], f"{DEFAULT_PREFIX}tracestate": case["state"]}
    span = get_current_span(extract_context(given)).get_span_context()
    existing = {DEFAULT_PREFIX + key: value for key, value in case["annotations"].items()}
    changes = inject_span_context(existing, span, counters=counters)
    assert {key.removeprefix(DEFAULT_PREFIX): value for key, value in changes.items()} == case["changes"]
    assert counters.injected == {case["result"]: 1}


def test_reconciles_have_the_outcomes_and_limits_of_the_table() -> None:
    row = TABLE["reconcile"]
    assert row["limits"]["remembered calls"] == tracing._MOST_REMEMBERED
    assert row["limits"]["counted apart"] == tracing._MOST_COUNTED
    assert row["limits"]["characters of a value"] == subject._LONGEST
    assert sorted(subject._HAVE_ATTRIBUTES.values()) == row["kinds with a name and a uid of their own"]
