"""The tests that KEP-5927 lists, by its words, on a cluster in virtual time; exports go over real sockets.

Its table of gate and rate, row by row: whether there is a span object, whether it records, whether it is exported.
The integration tests among them are run on a real API server as well, see tests/scheduler/cluster/kubernetes.
"""

import re
import selectors
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import TracerProvider, get_current_span
from podtrail_instrumentation import SpanCounters, TracingConfiguration, shutdown, tracer_provider
from podtrail_scheduler.cluster.simulated.slow_plugins import SlowScore
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import MILLISECOND, SECOND

from tests.scheduler.bench import ROOMY, Bench, pod
from tests.scheduler.collector import Collector, attributes

KEY = "tracing.k8s.io/traceparent"
CREATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED_CREATION = f"{CREATION[:-1]}0"
NODES = [Node(f"n{number}", allocatable=ROOMY) for number in range(3)]
ALL = 1_000_000


class Watcher:
    """A Filter plugin of somebody else, that sees which span is current when it is called."""

    name = "Watcher"

    def __init__(self, refuses: Sequence[str] = ()) -> None:
        self.refuses = refuses
        self.valid: list[bool] = []
        self.recording: list[bool] = []

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        span = get_current_span()
        self.valid.append(span.get_span_context().is_valid)
        self.recording.append(span.is_recording())
        return unschedulable("not this one") if node.name in self.refuses else None


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    yield server
    server.stop()


class Outcome:
    """What a Pod's attempt left behind with a provider, exported and all."""

    def __init__(self, provider: TracerProvider | None, traceparent: str = CREATION, **fields: Any) -> None:
        self.watcher = Watcher()
        self.bench = Bench(self.watcher, nodes=NODES, provider=provider)
        self.record = self.bench.attempt(pod(annotations={KEY: traceparent}, **fields))
        self.bench.step_until(lambda: self.record.result != "Success" or bool(self.bound.node_name))
        if provider is not None:
            shutdown(provider)

    @property
    def bound(self) -> Pod:
        return self.bench.api_server.pods["a"]

    @property
    def traceparent(self) -> str:
        return self.bound.annotations[KEY]


def traced(endpoint: str, rate: int | None) -> TracerProvider:
    configuration = TracingConfiguration(endpoint=endpoint, sampling_rate_per_million=rate)
    return tracer_provider(configuration, Resource({"service.name": "kube-scheduler"}), SpanCounters())


# The five rows of the table.


def test_feature_gate_disabled_creates_no_span_object_records_and_exports_nothing() -> None:
    outcome = Outcome(None)
    assert not any(outcome.watcher.valid)
    assert outcome.traceparent == CREATION


def test_feature_gate_enabled_without_tracing_configuration_creates_no_span_object_and_passes_context_through() -> None:
    outcome = Outcome(tracer_provider(None, Resource({}), SpanCounters()))
    assert not any(outcome.watcher.recording)
    assert outcome.traceparent == CREATION


@pytest.mark.parametrize("creation", [CREATION, UNSAMPLED_CREATION], ids=["link sampled", "link not sampled"])
@pytest.mark.parametrize("rate", [0, None], ids=["rate 0", "no rate"])
def test_feature_gate_enabled_with_sampling_rate_0_creates_non_recording_spans_and_exports_nothing(
    collector: Collector, rate: int | None, creation: str
) -> None:
    outcome = Outcome(traced(collector.endpoint, rate), traceparent=creation)
    assert all(outcome.watcher.valid)
    assert not any(outcome.watcher.recording)
    assert collector.spans == []
    assert outcome.traceparent[3:35] != CREATION[3:35]
    assert outcome.traceparent.endswith("-00")


def test_feature_gate_enabled_with_sampling_rate_0_initiates_an_otlp_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, selectors.DefaultSelector() as ready:
        provider = traced(f"127.0.0.1:{server.getsockname()[1]}", 0)
        ready.register(server, selectors.EVENT_READ)
        assert ready.select(timeout=120)
        shutdown(provider)


def test_an_unsampled_span_at_a_rate_is_non_recording_and_not_exported(collector: Collector) -> None:
    outcome = Outcome(traced(collector.endpoint, 1))  # one of a million: this one is not
    assert all(outcome.watcher.valid)
    assert not any(outcome.watcher.recording)
    assert collector.spans == []
    assert outcome.traceparent.endswith("-00")


def test_a_sampled_span_at_a_rate_is_recorded_and_exported(collector: Collector) -> None:
    outcome = Outcome(traced(collector.endpoint, ALL))
    assert all(outcome.watcher.recording)
    assert collector.named("SchedulePod").trace_id.hex() == outcome.traceparent[3:35]


# Unit tests.


def test_spans_are_created_for_each_scheduling_phase_and_per_plugin_invocations(collector: Collector) -> None:
    Outcome(traced(collector.endpoint, ALL))
    outline = collector.outline()
    cycles = outline["SchedulePod"]
    assert isinstance(cycles, dict)
    assert list(cycles) == ["schedulingCycle", "bindingCycle"]
    assert list(cycles["schedulingCycle"]) == ["preFilter", "filter", "preScore", "score", "reserve", "permit"]
    assert list(cycles["bindingCycle"]) == ["preBind", "bind", "postBind"]
    assert {"plugin: NodeResourcesFit", "plugin: TaintToleration"} <= {*cycles["schedulingCycle"]["filter"]}
    assert {"plugin: NodeResourcesBalancedAllocation"} <= {*cycles["schedulingCycle"]["score"]}
    assert cycles["bindingCycle"]["bind"] == {"plugin: DefaultBinder": {}}


def test_a_failed_filter_is_followed_by_post_filter_and_nothing_else(collector: Collector) -> None:
    outcome = Outcome(traced(collector.endpoint, ALL), requests={"cpu": 100_000})
    assert outcome.record.result == "Unschedulable"
    cycles = collector.outline()["SchedulePod"]
    assert isinstance(cycles, dict)
    assert list(cycles) == ["schedulingCycle"]
    assert list(cycles["schedulingCycle"]) == ["preFilter", "filter", "postFilter"]


def test_the_root_schedule_pod_span_has_the_correct_attributes_and_a_link_when_the_pod_carries_context(
    collector: Collector,
) -> None:
    outcome = Outcome(traced(collector.endpoint, ALL))
    root = collector.named("SchedulePod")
    assert attributes(root) == {
        "k8s.pod.name": "a",
        "k8s.pod.namespace": "default",
        "k8s.namespace.name": "default",
        "k8s.pod.uid": "a",
        "scheduler.queue_wait_ms": 0,
        "scheduler.profile": "default-scheduler",
        "scheduler.attempts": 1,
        "scheduler.result": "Success",
        "scheduler.selected_node": outcome.record.node,
    }
    [link] = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CREATION[3:35], CREATION[36:52])
    assert root.parent_span_id == b""
    assert (root.kind, root.status.code) == (Span.SPAN_KIND_CONSUMER, 0)


def test_a_rejecting_plugin_has_the_event_plugin_rejected_with_the_result(collector: Collector) -> None:
    Outcome(traced(collector.endpoint, ALL), requests={"cpu": 100_000})
    [event] = collector.named("plugin: NodeResourcesFit").events
    assert event.name == "plugin rejected"
    assert {each.key: each.value.string_value for each in event.attributes if each.value.string_value} == {
        "scheduler.result": "UnschedulableAndUnresolvable",
        "scheduler.reason": "Insufficient cpu",
    }


def test_plugins_that_have_nothing_to_do_are_named_on_the_phase(collector: Collector) -> None:
    Outcome(traced(collector.endpoint, ALL))
    [skipped] = [
        each.value for each in collector.named("preFilter").attributes if each.key == "scheduler.plugins.skipped"
    ]
    names = [each.string_value for each in skipped.array_value.values]
    assert "NodePorts" in names
    assert not {f"plugin: {name}" for name in names} & {
        span.name for span in collector.spans if span.parent_span_id == collector.named("preFilter").span_id
    }


def test_queue_wait_is_the_time_in_the_active_queue(collector: Collector) -> None:
    provider = traced(collector.endpoint, ALL)
    bench = Bench(provider=provider)
    bench.create(pod("first"))
    bench.create(pod("second"))
    bench.step_until(lambda: len(bench.records) == 2)
    shutdown(provider)
    roots = {
        attributes(span)["k8s.pod.name"]: attributes(span) for span in collector.spans if span.name == "SchedulePod"
    }
    assert roots["first"]["scheduler.queue_wait_ms"] == 0
    waited = roots["second"]["scheduler.queue_wait_ms"]
    assert isinstance(waited, int)
    assert 0 <= waited < 1000


# Context propagation.


@pytest.mark.parametrize(
    "wrong",
    [
        CREATION.upper(),
        CREATION[:-1],
        f"{CREATION}-00",
        f"01{CREATION[2:]}",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        "nonsense",
    ],
)
def test_an_annotation_that_is_not_exactly_a_traceparent_makes_no_link(collector: Collector, wrong: str) -> None:
    Outcome(traced(collector.endpoint, ALL), traceparent=wrong)
    assert not collector.named("SchedulePod").links


def test_after_binding_the_scheduler_has_re_injected_its_own_trace_context(collector: Collector) -> None:
    outcome = Outcome(traced(collector.endpoint, ALL))
    root = collector.named("SchedulePod")
    assert outcome.traceparent == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"


@pytest.mark.parametrize("rate", [0, ALL])
def test_every_attempt_counts_what_it_found_and_what_it_wrote(collector: Collector, rate: int) -> None:
    bench = Bench(nodes=NODES, provider=traced(collector.endpoint, rate))
    for number, annotations in enumerate(({KEY: CREATION}, {KEY: CREATION}, {}, {KEY: "nonsense"})):
        bench.attempt(pod(f"p{number}", annotations=annotations))
    labels = {"component": "kube-scheduler", "controller": "default-scheduler", "resource_kind": "Pod"}
    counted = {
        (name, told["result"]): value
        for counters in bench.scheduler.propagation.values()
        for name, told, value in counters.samples()
        if told.items() >= labels.items()
    }
    assert counted == {
        ("trace_context_annotations_injected_total", "success"): 4,
        ("trace_context_annotations_extracted_total", "success"): 2,
        ("trace_context_annotations_extracted_total", "absent"): 1,
        ("trace_context_annotations_extracted_total", "invalid"): 1,
    }


def test_without_async_trace_context_propagation_there_is_no_link_and_the_annotation_stays(
    collector: Collector,
) -> None:
    provider = traced(collector.endpoint, ALL)
    bench = Bench(nodes=NODES, provider=provider, propagate=False)
    bench.attempt(pod(annotations={KEY: CREATION}))
    shutdown(provider)
    assert not collector.named("SchedulePod").links
    assert bench.api_server.pods["a"].annotations == {KEY: CREATION}


# The log that utiltrace wrote, from the same spans, traced or not.


def test_a_scheduling_cycle_of_100_ms_is_logged_with_its_steps_as_utiltrace_does() -> None:
    texts: list[str] = []
    spent: list[Bench] = []
    slow = SlowScore("Slow", lambda duration: spent[0].timeline.spend(duration), lambda _: 150 * MILLISECOND)
    spent.append(Bench(slow, nodes=NODES, log=texts.append))
    spent[0].attempt(pod())
    [text] = texts
    head, *steps, last = text.splitlines()
    assert re.fullmatch(
        r'Trace\[\d+\]: "SchedulePod" k8s.pod.name:a,.* \(\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d\.\d{3}\) '
        r"\(total time: \d+ms\):",
        head,
    )
    assert any('["plugin: Slow" ' in step and "150ms" in step for step in steps)
    assert last.endswith("END")


def test_a_slow_binding_is_no_reason_to_log_an_attempt() -> None:
    texts: list[str] = []
    assert Bench(nodes=NODES, bind_takes=5 * SECOND, log=texts.append).attempt(pod()).result == "Success"
    assert texts == []


# Export is not scheduling's business.


def test_exports_that_fail_leave_scheduling_alone_and_are_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        endpoint = f"127.0.0.1:{nobody.getsockname()[1]}"
    counters = SpanCounters()
    configuration = TracingConfiguration(endpoint=endpoint, sampling_rate_per_million=ALL)
    provider = tracer_provider(configuration, Resource({}), counters)
    bench = Bench(nodes=NODES, provider=provider)
    assert bench.attempt(pod()).result == "Success"
    shutdown(provider)
    exported = {
        labels["result"]: value
        for name, labels, value in counters.samples()
        if name == "scheduler_tracing_spans_exported_total"
    }
    assert exported["error"] > 10
