"""Handlers called as kopf calls them; tests/examples has an operator that runs."""

import asyncio
import contextlib
import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import kopf
import pytest
from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from podtrail_instrumentation import TracingConfiguration, provider_around, shutdown, tracer_provider
from podtrail_instrumentation.operators import OperatorTracing
from podtrail_instrumentation.sampling import RateSampler
from podtrail_instrumentation.span_counters import SpanCounters

from .conftest import SPAN, TRACE, TRACEPARENT

Arguments = Callable[..., dict[str, Any]]
CARRIED = {"tracing.k8s.io/traceparent": TRACEPARENT}


def nothing(**_: Any) -> None: ...


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_call_is_a_root_linked_to_what_the_object_carries(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    @tracing.handler
    def apply(spec: Any = None, **_: Any) -> str:
        return "done"

    assert apply(**arguments(CARRIED)) == "done"
    [span] = exporter.get_finished_spans()
    assert span.name.startswith("reconcile ")
    assert span.name.endswith("apply")
    assert (span.kind, span.parent, span.status.status_code) == (SpanKind.CONSUMER, None, StatusCode.UNSET)
    [link] = span.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == (TRACE, SPAN)
    assert dict(link.attributes or {})["podtrail.link.trusted"] is False


def test_a_span_says_the_handler_the_reason_and_the_object(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    @tracing.handler
    def apply(**_: Any) -> None: ...

    apply(**arguments(retry=2))
    [span] = exporter.get_finished_spans()
    told = attributes(span)
    assert told.pop("kopf.handler").endswith("apply")
    assert told == {
        "kopf.reason": "create",
        "kopf.retry": 2,
        "kopf.outcome": "succeeded",
        "k8s.object.api_version": "example.com/v1",
        "k8s.object.kind": "Widget",
        "k8s.object.name": "blue",
        "k8s.object.uid": "u-1",
        "k8s.object.resource_version": "7",
        "k8s.namespace.name": "shop",
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "uid"),
    [
        ("v1", "Pod", "k8s.pod.uid"),
        ("batch/v1", "Job", "k8s.job.uid"),
        ("batch.volcano.sh/v1alpha1", "Job", ""),
        ("example.com/v1", "Pod", ""),
    ],
)
def test_a_kind_of_kubernetes_is_named_as_the_semantic_conventions_name_it(
    tracing: OperatorTracing,
    exporter: InMemorySpanExporter,
    arguments: Arguments,
    api_version: str,
    kind: str,
    uid: str,
) -> None:
    tracing.handler(nothing)(**arguments(api_version=api_version, kind=kind))
    [span] = exporter.get_finished_spans()
    told = attributes(span)
    assert told.get(uid) == ("u-1" if uid else None)
    assert any(key.endswith(f"{kind.lower()}.uid") for key in told) == bool(uid)


def test_an_async_handler_is_one_to_kopf_too_and_its_own_spans_are_children(
    tracing: OperatorTracing, provider: TracerProvider, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    @tracing.handler
    async def apply(**_: Any) -> int:
        await asyncio.sleep(0)
        with provider.get_tracer("user").start_as_current_span("call the cloud"):
            return 3

    assert asyncio.run(apply(**arguments())) == 3
    inner, outer = exporter.get_finished_spans()
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert not get_current_span().get_span_context().is_valid


def test_a_partial_has_the_name_that_kopf_gives_it(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    def apply(size: int, **_: Any) -> None: ...

    tracing.handler(functools.partial(apply, 3))(**arguments())
    assert exporter.get_finished_spans()[0].name == f"reconcile {apply.__qualname__}"


def test_without_annotation_a_call_is_part_of_what_is_under_way(
    tracing: OperatorTracing, provider: TracerProvider, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    with provider.get_tracer("user").start_as_current_span("outer"):
        tracing.handler(nothing)(**arguments())
    inner, outer = exporter.get_finished_spans()
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id


def test_a_handler_within_a_handler_of_the_same_object_is_its_child(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    inner = tracing.handler(nothing)

    @tracing.handler
    def outer(**_: Any) -> None:
        inner(**arguments(CARRIED))

    outer(**arguments(CARRIED))
    child, root = exporter.get_finished_spans()
    assert child.parent is not None
    assert child.parent.span_id == root.context.span_id


def test_what_a_daemon_calls_is_no_part_of_its_endless_span(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    look = tracing.handler(nothing)

    @tracing.handler
    def daemon(**_: Any) -> None:
        look(**arguments(CARRIED))

    daemon(**arguments(CARRIED, stopped=threading.Event()))
    first, last = exporter.get_finished_spans()
    assert (first.parent, last.parent) == (None, None)


class TestErrors:
    def call(self, tracing: OperatorTracing, raised: BaseException, given: dict[str, Any]) -> None:
        @tracing.handler
        def apply(**_: Any) -> None:
            raise raised

        with pytest.raises(type(raised)) as caught:
            apply(**given)
        assert caught.value is raised

    def test_a_temporary_error_is_a_retry_with_its_delay_and_no_failure(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        self.call(tracing, kopf.TemporaryError("not ready", delay=15), arguments())
        [span] = exporter.get_finished_spans()
        assert span.status.status_code is StatusCode.UNSET
        assert (attributes(span)["kopf.outcome"], attributes(span)["kopf.retry.delay"]) == ("retry", 15.0)
        [event] = span.events
        assert (event.name, dict(event.attributes or {})) == (
            "retry",
            {"kopf.retry.delay": 15.0, "exception.message": "not ready"},
        )

    def test_a_permanent_error_is_an_error(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        self.call(tracing, kopf.PermanentError("never"), arguments())
        [span] = exporter.get_finished_spans()
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "never")
        assert attributes(span)["kopf.outcome"] == "failed"
        assert dict(span.events[0].attributes or {}) == {
            "exception.type": "PermanentError",
            "exception.message": "never",
        }

    def test_any_other_error_tells_where_it_happened(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        self.call(tracing, KeyError("x" * 5000), arguments())
        [span] = exporter.get_finished_spans()
        assert attributes(span)["kopf.outcome"] == "error"
        event = dict(span.events[0].attributes or {})
        assert len(str(event["exception.message"])) == 1024
        assert len(str(event["exception.stacktrace"])) <= 4096
        assert span.status.status_code is StatusCode.ERROR

    def test_an_error_that_cannot_be_told_reaches_kopf_as_it_is(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        class Unspeakable(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        soon: Any = "soon"
        self.call(tracing, Unspeakable(), arguments())
        self.call(tracing, kopf.TemporaryError("not ready", delay=soon), arguments())
        failed, retried = exporter.get_finished_spans()
        assert failed.status.description == "<exception str() failed>"
        assert attributes(retried)["kopf.outcome"] == "retry"
        assert "kopf.retry.delay" not in attributes(retried)

    def test_a_denied_admission_is_an_answer(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        self.call(tracing, kopf.AdmissionError("no"), arguments())
        [span] = exporter.get_finished_spans()
        assert (span.status.status_code, attributes(span)["kopf.outcome"]) == (StatusCode.UNSET, "denied")

    def test_an_operator_that_ends_cancels(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        self.call(tracing, asyncio.CancelledError(), arguments())
        [span] = exporter.get_finished_spans()
        assert (span.status.status_code, attributes(span)["kopf.outcome"]) == (StatusCode.UNSET, "cancelled")

    def test_the_next_call_is_linked_to_the_one_that_asked_for_it(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        answers = iter([kopf.TemporaryError("a", delay=1), ValueError("b"), None, None])

        @tracing.handler
        def apply(**_: Any) -> None:
            if (answer := next(answers)) is not None:
                raise answer

        for retry in range(4):
            with contextlib.suppress(kopf.TemporaryError, ValueError):
                apply(**arguments(CARRIED, retry=retry))
        first, second, third, fourth = exporter.get_finished_spans()
        assert len(first.links) == len(fourth.links) == 1
        for earlier, later in ((first, second), (second, third)):
            claimed, before = later.links
            assert f"{claimed.context.trace_id:032x}" == TRACE
            assert before.context.span_id == earlier.context.span_id
            assert dict(before.attributes or {}) == {"podtrail.link.type": "previous-attempt"}


class TestHarm:
    @pytest.mark.parametrize(
        "annotations",
        [
            {"tracing.k8s.io/traceparent": "x" * 262_144},
            {"tracing.k8s.io/traceparent": TRACEPARENT + "\n"},
            {"tracing.k8s.io/traceparent": 7},
            {"tracing.k8s.io/traceparent": None, "tracing.k8s.io/tracestate": ["a"]},
            {"tracing.k8s.io/traceparent": f"00-{'0' * 32}-{SPAN}-01"},
        ],
        ids=["long", "newline", "number", "none", "zero"],
    )
    def test_hostile_annotations_are_no_link(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments, annotations: Any
    ) -> None:
        assert tracing.handler(lambda **_: "done")(**arguments(annotations)) == "done"
        [span] = exporter.get_finished_spans()
        assert not span.links

    def test_a_hostile_tracestate_is_left_out(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        given = arguments(CARRIED | {"tracing.k8s.io/tracestate": "x=" + "y" * 10_000})
        tracing.handler(nothing)(**given)
        [link] = exporter.get_finished_spans()[0].links
        assert not link.context.trace_state

    @pytest.mark.parametrize(
        "given", [{}, {"body": None, "annotations": "x", "retry": None}, {"body": {"metadata": 3}}]
    )
    def test_a_handler_without_an_object_is_traced_all_the_same(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, given: dict[str, Any]
    ) -> None:
        tracing.handler(nothing)(**given)
        [span] = exporter.get_finished_spans()
        assert not [key for key in attributes(span) if key.startswith("k8s.")]

    def test_an_endpoint_that_nobody_listens_on_holds_up_no_handler(self, arguments: Arguments) -> None:
        counters = SpanCounters()
        configuration = TracingConfiguration(endpoint="127.0.0.1:1", sampling_rate_per_million=1_000_000)
        provider = tracer_provider(configuration, Resource({}), counters, shutdown_timeout=0.2)
        tracing = OperatorTracing(provider.get_tracer("test"))
        apply = tracing.handler(nothing)
        for _ in range(100):
            apply(**arguments())
        shutdown(provider)
        assert counters.exported + sum(counters.lost.values()) == 100

    def test_calls_that_never_end_well_are_forgotten_in_the_end(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        @tracing.handler
        def apply(**_: Any) -> None:
            raise kopf.TemporaryError("again")

        def call(uid: str) -> None:
            body = {"metadata": {"uid": uid}}
            with pytest.raises(kopf.TemporaryError):
                apply(body=body)

        call("first")
        for number in range(4096):
            call(str(number))
        exporter.clear()
        call("first")
        call("4095")
        first, last = exporter.get_finished_spans()
        assert (len(first.links), len(last.links)) == (0, 1)

    def test_only_who_asks_for_it_imports_kopf(self) -> None:
        code = "import sys, podtrail_instrumentation; sys.exit('kopf' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_what_an_object_carries_is_counted_by_handler_and_kind(tracing: OperatorTracing, arguments: Arguments) -> None:
    apply = tracing.handler(nothing)
    apply(**arguments(CARRIED))
    apply(**arguments())
    apply(**arguments({"tracing.k8s.io/traceparent": "no"}))
    found = {(name, labels["resource_kind"], labels["result"]): value for name, labels, value in tracing.samples()}
    name = "trace_context_annotations_extracted_total"
    assert found == {(name, "Widget", result): 1 for result in ("success", "absent", "invalid")}


def test_an_unsampled_handler_costs_no_span_and_its_context_stays_clean(
    exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    provider = provider_around(SimpleSpanProcessor(exporter), Resource({}), sampler=RateSampler(0))
    token = attach(Context())
    OperatorTracing(provider.get_tracer("test")).handler(nothing)(**arguments(CARRIED))
    assert not get_current_span().get_span_context().is_valid
    detach(token)
    assert exporter.get_finished_spans() == ()
