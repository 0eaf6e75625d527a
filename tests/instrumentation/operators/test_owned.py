"""What handlers make carries their context, and Deployments are not rolled out by it."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from podtrail_instrumentation import provider_around
from podtrail_instrumentation.operators import OperatorTracing
from podtrail_instrumentation.sampling import RateSampler

from kubernetes import client

from .conftest import TRACEPARENT

Arguments = Callable[..., dict[str, Any]]
KEY = "tracing.k8s.io/traceparent"
OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


def deployment(image: str = "shop:1") -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [{"name": "shop", "image": image}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {"template": template}}


def in_handler(tracing: OperatorTracing, given: dict[str, Any], objects: Any, live: Any = None) -> None:
    tracing.handler(lambda **_: tracing.carry(objects, live))(**given)


def traceparent(exporter: InMemorySpanExporter) -> str:
    context = exporter.get_finished_spans()[-1].context
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


@pytest.mark.parametrize(
    "made",
    [
        {"kind": "ConfigMap"},
        {"kind": "Pod", "metadata": {"annotations": None}},
        {"kind": "Pod", "metadata": {"annotations": {"other": "1"}}},
    ],
)
def test_an_object_carries_the_span_of_the_handler_that_makes_it(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments, made: dict[str, Any]
) -> None:
    in_handler(tracing, arguments({KEY: TRACEPARENT}), made)
    assert made["metadata"]["annotations"][KEY] == traceparent(exporter)


def test_so_do_the_pod_templates_in_it(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    cron: Any = {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}
    made: Any = [deployment(), cron]
    in_handler(tracing, arguments(), made)
    job = cron["spec"]["jobTemplate"]
    for place in (made[0], made[0]["spec"]["template"], cron, job, job["spec"]["template"]):
        assert place["metadata"]["annotations"] == {KEY: traceparent(exporter)}


def test_a_model_of_the_kubernetes_client_does_too(
    tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    template: Any = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": "shop"}))
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(), template=template)
    made: Any = client.V1Deployment(metadata=client.V1ObjectMeta(name="shop"), spec=spec, kind="Deployment")
    in_handler(tracing, arguments(), made)
    assert made.metadata.annotations == template.metadata.annotations == {KEY: traceparent(exporter)}


def test_and_what_pykube_wraps(tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments) -> None:
    made: Any = SimpleNamespace(obj={"kind": "Pod"})
    in_handler(tracing, arguments(), made)
    assert made.obj["metadata"]["annotations"][KEY] == traceparent(exporter)


def test_what_the_handler_says_itself_stays(tracing: OperatorTracing, arguments: Arguments) -> None:
    made = {"kind": "Pod", "metadata": {"annotations": {KEY: OTHER}}}
    in_handler(tracing, arguments(), made)
    assert made["metadata"] == {"annotations": {KEY: OTHER}}


def test_an_unsampled_handler_hands_on_what_its_object_carries(
    exporter: InMemorySpanExporter, arguments: Arguments
) -> None:
    provider = provider_around(SimpleSpanProcessor(exporter), Resource({}), sampler=RateSampler(0))
    made: dict[str, Any] = {"kind": "Pod"}
    in_handler(OperatorTracing(provider.get_tracer("test")), arguments({KEY: TRACEPARENT}), made)
    assert made["metadata"]["annotations"][KEY] == TRACEPARENT


class TestLive:
    def live(self) -> dict[str, Any]:
        """A Deployment as it is in the cluster: with what the API server filled in, and with context."""
        made = deployment()
        made["metadata"] |= {"uid": "u-2", "annotations": {KEY: OTHER}}
        made["spec"] |= {"replicas": 1}
        made["spec"]["template"]["metadata"]["annotations"] = {KEY: OTHER}
        made["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"
        return made

    def test_what_is_the_same_keeps_what_it_carries(self, tracing: OperatorTracing, arguments: Arguments) -> None:
        wanted = deployment()
        in_handler(tracing, arguments(reason="update"), wanted, self.live())
        assert wanted["metadata"]["annotations"] == {KEY: OTHER}
        assert wanted["spec"]["template"]["metadata"]["annotations"] == {KEY: OTHER}

    def test_a_change_carries_the_handler_that_makes_it(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        wanted = deployment("shop:2")
        in_handler(tracing, arguments(reason="update"), wanted, self.live())
        assert wanted["spec"]["template"]["metadata"]["annotations"] == {KEY: traceparent(exporter)}

    def test_a_change_beside_the_template_rolls_nothing_out(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        wanted = deployment()
        wanted["spec"]["replicas"] = 3
        in_handler(tracing, arguments(reason="update"), wanted, self.live())
        assert wanted["metadata"]["annotations"] == {KEY: traceparent(exporter)}
        assert wanted["spec"]["template"]["metadata"]["annotations"] == {KEY: OTHER}

    def test_a_template_in_a_template_is_looked_at_by_itself(
        self, tracing: OperatorTracing, exporter: InMemorySpanExporter, arguments: Arguments
    ) -> None:
        def cron(schedule: str, parallelism: int) -> Any:
            template: Any = {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            job = {"metadata": {}, "spec": {"parallelism": parallelism, "template": template}}
            return {"kind": "CronJob", "metadata": {}, "spec": {"schedule": schedule, "jobTemplate": job}}

        live, wanted = cron("* * * * *", 1), cron("* * * * *", 2)
        for place in (live, live["spec"]["jobTemplate"], live["spec"]["jobTemplate"]["spec"]["template"]):
            place["metadata"]["annotations"] = {KEY: OTHER}
        in_handler(tracing, arguments(reason="update"), wanted, live)
        job = wanted["spec"]["jobTemplate"]
        assert job["metadata"]["annotations"] == {KEY: traceparent(exporter)}
        assert job["spec"]["template"]["metadata"]["annotations"] == {KEY: OTHER}

    def test_a_timer_rolls_nothing_out(self, tracing: OperatorTracing, arguments: Arguments) -> None:
        wanted = deployment("registry/shop:1")  # as the API server might have written it in other words
        given = arguments()
        del given["reason"]
        in_handler(tracing, given, wanted, self.live())
        assert wanted["spec"]["template"]["metadata"]["annotations"] == {KEY: OTHER}

    def test_what_carried_nothing_still_carries_nothing(self, tracing: OperatorTracing, arguments: Arguments) -> None:
        live, wanted = deployment(), deployment()
        in_handler(tracing, arguments(reason="resume"), wanted, live)
        assert not wanted["spec"]["template"]["metadata"]["annotations"]

    def test_the_live_object_is_not_touched(self, tracing: OperatorTracing, arguments: Arguments) -> None:
        live = deployment()
        before = copy.deepcopy(live)
        in_handler(tracing, arguments(reason="update"), deployment("shop:2"), live)
        assert live == before

    def test_models_are_compared_as_well(self, tracing: OperatorTracing, arguments: Arguments) -> None:
        def pod(image: str, **annotations: str) -> Any:
            containers = [client.V1Container(name="shop", image=image)]
            metadata = client.V1ObjectMeta(name="shop", annotations=annotations or None)
            return client.V1Pod(metadata=metadata, spec=client.V1PodSpec(containers=containers))

        same, changed = pod("shop:1"), pod("shop:2")
        for wanted in (same, changed):
            in_handler(tracing, arguments(reason="update"), wanted, pod("shop:1", **{KEY: OTHER}))
        assert same.metadata.annotations == {KEY: OTHER}
        assert changed.metadata.annotations[KEY] != OTHER


class TestNothingToWrite:
    def test_outside_of_a_handler_nothing_is_written(self, tracing: OperatorTracing) -> None:
        made = {"kind": "Pod"}
        tracing.carry(made)
        assert made == {"kind": "Pod"}
        assert [(labels["result"], value) for _, labels, value in tracing.samples()] == [("no_context", 1)]

    @pytest.mark.parametrize("made", [3, "Pod", object(), None], ids=["number", "text", "object", "none"])
    def test_what_is_no_object_is_said_and_counted(
        self, tracing: OperatorTracing, arguments: Arguments, made: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        in_handler(tracing, arguments(), made)
        assert f"{type(made).__name__} is no object of Kubernetes" in caplog.text
        assert "unsupported" in [labels["result"] for _, labels, _ in tracing.samples()]

    def test_kinds_without_end_are_counted_as_one(self, tracing: OperatorTracing) -> None:
        for number in range(1100):
            tracing.carry({"kind": f"Kind{number}"})
        found = {labels["resource_kind"]: value for _, labels, value in tracing.samples()}
        assert (len(found), found["other"]) == (1025, 76)
