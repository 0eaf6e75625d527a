"""A real API server asks the webhook: what is in the Pods then, and what happens while the webhook is none."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.envtest.control_plane import Api, ControlPlane, Refusal
from tests.webhook.conftest import PATIENCE, TRACEPARENT, Certified, pod

pytestmark = pytest.mark.control_plane
CONFIGURATION = Path(__file__).parents[2] / "docker" / "kubernetes" / "webhook" / "configuration.yaml"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
KEY = "tracing.k8s.io/traceparent"
TRACE_ID = TRACEPARENT[3:35]

Configure = Callable[..., str]


@pytest.fixture(params=["traced", "untraced"])
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    """A control plane that traces, and one that does not."""
    found = request.getfixturevalue("traced" if request.param == "traced" else "control_plane")
    assert isinstance(found, ControlPlane)
    return found


@pytest.fixture
def configure() -> Iterator[Configure]:
    """Has an API server ask a webhook about a namespace of its own, as the shipped configuration has it."""
    made: list[tuple[Api, str]] = []

    def apply(plane: ControlPlane, url: str, ca_bundle: str | None, **fields: Any) -> str:
        name = f"webhook-{len(made)}-{time.monotonic_ns()}"
        namespace = plane.api.namespace(name)
        configuration = yaml.safe_load(CONFIGURATION.read_text("utf-8"))
        configuration["metadata"]["name"] = name
        (webhook,) = configuration["webhooks"]
        webhook["clientConfig"] = {"url": url} | ({"caBundle": ca_bundle} if ca_bundle else {})
        webhook["namespaceSelector"]["matchExpressions"].append(
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
        )
        webhook.update(fields)
        plane.api.create(CONFIGURATIONS, configuration)
        made.append((plane.api, name))
        return namespace

    yield apply
    for api, name in made:
        api.delete(f"{CONFIGURATIONS}/{name}")


def until(true: Callable[[], Any]) -> Any:
    """Waits for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("did not come true")


def create(api: Api, namespace: str, obj: dict[str, Any], collection: str = "/api/v1", **headers: str) -> Any:
    """Creates a Pod, or what has a template."""
    resource = f"{obj['kind'].lower()}s"
    return api.request("POST", f"{collection}/namespaces/{namespace}/{resource}", obj, **headers)


def await_webhook(api: Api, namespace: str) -> None:
    """Waits until the API server has seen the configuration: it takes up to a second."""

    def asked() -> bool:
        made = create(api, namespace, pod("probe"), traceparent=TRACEPARENT)
        api.delete(f"/api/v1/namespaces/{namespace}/pods/probe")
        return KEY in made["metadata"].get("annotations", {})

    until(asked)


def deployment(name: str = "web") -> dict[str, Any]:
    """A Deployment."""
    template = pod()
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def user(plane: ControlPlane, name: str) -> Api:
    """An ordinary user who may do everything."""
    plane.user(name)
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    binding = {
        "metadata": {"name": f"everything-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    with contextlib.suppress(Refusal):
        plane.api.create(path, binding)
    return plane.api_as(name)


def test_a_pod_and_a_template_have_the_context_of_the_request_that_made_them(
    plane: ControlPlane, run_webhook: Any, certified: Certified, configure: Configure
) -> None:
    namespace = configure(plane, run_webhook(*certified.arguments).url, certified.ca_bundle)
    await_webhook(plane.api, namespace)
    made = create(plane.api, namespace, pod("asked"), traceparent=TRACEPARENT, tracestate="vendor=1")
    assert made["metadata"]["annotations"][KEY].startswith(f"00-{TRACE_ID}-")
    assert made["metadata"]["annotations"]["tracing.k8s.io/tracestate"] == "vendor=1"
    made = create(plane.api, namespace, deployment(), "/apis/apps/v1", traceparent=TRACEPARENT)
    assert made["spec"]["template"]["metadata"]["annotations"][KEY].startswith(f"00-{TRACE_ID}-")
    assert "annotations" not in made["metadata"]
