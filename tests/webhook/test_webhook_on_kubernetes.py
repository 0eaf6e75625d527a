"""A real API server asks the webhook: what is in the Pods then, for whom, and what is left alone."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.envtest.control_plane import ControlPlane
from tests.webhook.asking import KEY, TRACE_ID, annotation, await_webhook, create, deployment, user
from tests.webhook.conftest import TRACEPARENT, Certified, RunningWebhook, pod

pytestmark = pytest.mark.control_plane
Configure = Callable[..., str]
Asked = Callable[[ControlPlane], str]
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def webhook(run_webhook: Callable[..., RunningWebhook], certified: Certified) -> RunningWebhook:
    return run_webhook(*certified.arguments)


@pytest.fixture
def asked(webhook: RunningWebhook, certified: Certified, configure: Configure) -> Asked:
    """A namespace about which an API server asks the webhook."""

    def start(plane: ControlPlane) -> str:
        namespace = configure(plane, webhook.url, certified.ca_bundle)
        await_webhook(plane.api, namespace)
        return namespace

    return start


def test_a_pod_and_a_template_have_the_context_of_the_request_that_made_them(plane: ControlPlane, asked: Asked) -> None:
    namespace = asked(plane)
    made = create(plane.api, namespace, pod("asked"), traceparent=TRACEPARENT, tracestate="vendor=1")
    assert made["metadata"]["annotations"][KEY].startswith(f"00-{TRACE_ID}-")
    assert made["metadata"]["annotations"]["tracing.k8s.io/tracestate"] == "vendor=1"
    made = create(plane.api, namespace, deployment(), "/apis/apps/v1", traceparent=TRACEPARENT)
    assert made["spec"]["template"]["metadata"]["annotations"][KEY].startswith(f"00-{TRACE_ID}-")
    assert "annotations" not in made["metadata"]


def test_an_api_server_that_traces_begins_a_trace_where_the_client_has_none(
    traced: ControlPlane, asked: Asked, webhook: RunningWebhook
) -> None:
    made = annotation(create(traced.api, asked(traced), pod()))
    assert made is not None
    assert made.endswith("-01")
    assert TRACE_ID not in made


def test_an_api_server_that_does_not_trace_sends_nothing_and_nothing_is_written(
    control_plane: ControlPlane, asked: Asked, webhook: RunningWebhook
) -> None:
    namespace = asked(control_plane)
    assert annotation(create(control_plane.api, namespace, pod())) is None
    assert webhook.results()["no_context"] == 1


def test_of_an_ordinary_user_an_api_server_that_traces_begins_a_trace_of_its_own(
    traced: ControlPlane, asked: Asked
) -> None:
    alice = user(traced, "alice")
    made = annotation(create(alice, asked(traced), pod(), traceparent=TRACEPARENT))
    assert made is not None
    assert TRACE_ID not in made


def test_of_an_ordinary_user_an_api_server_that_does_not_trace_hands_on_what_was_sent(
    control_plane: ControlPlane, asked: Asked
) -> None:
    alice = user(control_plane, "alice")
    namespace = asked(control_plane)
    assert annotation(create(alice, namespace, pod(), traceparent=TRACEPARENT)) == TRACEPARENT
    assert annotation(create(alice, namespace, pod("forged"), traceparent="00-forged")) is None


def test_a_context_that_is_not_sampled_is_not_written(
    plane: ControlPlane, asked: Asked, webhook: RunningWebhook
) -> None:
    namespace = asked(plane)
    assert annotation(create(plane.api, namespace, pod(), traceparent=f"{TRACEPARENT[:-2]}00")) is None
    assert webhook.results()["not_sampled"] == 1


def test_a_valid_annotation_stays_and_a_forged_one_gives_way_with_a_warning(plane: ControlPlane, asked: Asked) -> None:
    namespace = asked(plane)
    made = create(plane.api, namespace, pod("kept", {KEY: OTHER}), traceparent=TRACEPARENT)
    assert annotation(made) == OTHER
    assert plane.api.warnings == []
    for name, forged in (("nonsense", "x"), ("overlong", "00-" + "a" * 200_000)):
        made = annotation(create(plane.api, namespace, pod(name, {KEY: forged}), traceparent=TRACEPARENT))
        assert made is not None
        assert made.startswith(f"00-{TRACE_ID}-")
        (warning,) = plane.api.warnings
        assert f"{KEY} was replaced: it is no traceparent" in warning


@pytest.mark.parametrize(
    ("kind", "collection", "way"),
    [
        ("ReplicationController", "/api/v1", "spec"),
        ("DaemonSet", "/apis/apps/v1", "spec"),
        ("ReplicaSet", "/apis/apps/v1", "spec"),
        ("StatefulSet", "/apis/apps/v1", "spec"),
        ("Job", "/apis/batch/v1", "spec"),
        ("CronJob", "/apis/batch/v1", "spec.jobTemplate.spec"),
    ],
)
def test_each_kind_of_workload_has_the_context_in_its_template(
    control_plane: ControlPlane, asked: Asked, kind: str, collection: str, way: str
) -> None:
    obj = workload(kind, collection.removeprefix("/apis/").removeprefix("/api/"))
    made = create(control_plane.api, asked(control_plane), obj, collection, traceparent=TRACEPARENT)
    for step in way.split("."):
        made = made[step]
    assert annotation(made["template"]) == TRACEPARENT


def workload(kind: str, version: str) -> dict[str, Any]:
    labels = {"app": "web"}
    spec: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": dict(pod()["spec"])}}
    if kind == "ReplicationController":
        spec["selector"] = labels
    elif kind in ("Job", "CronJob"):
        spec["template"]["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def test_a_replica_set_that_a_deployment_owns_keeps_the_template_it_was_made_from(
    traced: ControlPlane, asked: Asked, webhook: RunningWebhook
) -> None:
    namespace = asked(traced)
    owner = create(traced.api, namespace, deployment(), "/apis/apps/v1")
    owned = workload("ReplicaSet", "apps/v1")
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    made = create(traced.api, namespace, owned, "/apis/apps/v1")
    assert annotation(made["spec"]["template"]) is None
    assert webhook.results()["controlled"] == 1


def test_a_dry_run_shows_what_would_be_written(plane: ControlPlane, asked: Asked) -> None:
    path = f"/api/v1/namespaces/{asked(plane)}/pods?dryRun=All"
    made = annotation(plane.api.request("POST", path, pod(), traceparent=TRACEPARENT))
    assert made is not None
    assert TRACE_ID in made


def test_an_update_is_not_asked_about(control_plane: ControlPlane, asked: Asked, webhook: RunningWebhook) -> None:
    namespace = asked(control_plane)
    create(control_plane.api, namespace, deployment(), "/apis/apps/v1", traceparent=TRACEPARENT)
    before = webhook.results()
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    gone = {"spec": {"template": {"metadata": {"annotations": None}}}}
    after = control_plane.api.request("PATCH", path, gone, "application/merge-patch+json", traceparent=TRACEPARENT)
    assert annotation(after["spec"]["template"]) is None
    assert webhook.results() == before


def test_a_label_leaves_a_pod_a_workload_or_a_namespace_out(
    control_plane: ControlPlane, asked: Asked, webhook: RunningWebhook, certified: Certified, configure: Configure
) -> None:
    namespace = asked(control_plane)
    label = {"podtrail/trace-context": "disabled"}
    out = configure(control_plane, webhook.url, certified.ca_bundle, **label)
    labelled, workload = pod("out"), deployment("out")
    for each in (labelled, workload):
        each["metadata"]["labels"] = label
    api = control_plane.api
    assert annotation(create(api, namespace, labelled, traceparent=TRACEPARENT)) is None
    made = create(api, namespace, workload, "/apis/apps/v1", traceparent=TRACEPARENT)
    assert annotation(made["spec"]["template"]) is None
    await_webhook(api, namespace)
    assert annotation(create(api, out, pod(), traceparent=TRACEPARENT)) is None
    assert annotation(create(api, namespace, pod("in"), traceparent=TRACEPARENT)) == TRACEPARENT


def test_annotations_of_others_than_the_trusted_give_way(
    control_plane: ControlPlane, run_webhook: Callable[..., RunningWebhook], certified: Certified, configure: Configure
) -> None:
    webhook = run_webhook(*certified.arguments, "--trusted-group=system:masters")
    namespace = configure(control_plane, webhook.url, certified.ca_bundle)
    await_webhook(control_plane.api, namespace)
    alice = user(control_plane, "alice")
    assert annotation(create(control_plane.api, namespace, pod("trusted", {KEY: OTHER}))) == OTHER
    assert annotation(create(alice, namespace, pod("removed", {KEY: OTHER}))) is None
    assert "was removed: 'alice' may not write it" in alice.warnings[0]
    made = create(alice, namespace, pod("replaced", {KEY: OTHER}), traceparent=TRACEPARENT)
    assert annotation(made) == TRACEPARENT
