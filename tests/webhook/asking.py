"""API servers that ask webhooks, and what is created with them."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.envtest.control_plane import Api, ControlPlane, Refusal
from tests.webhook.conftest import PATIENCE, TRACEPARENT, pod

MANIFESTS = Path(__file__).parents[2] / "docker" / "kubernetes" / "webhook"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
KEY = "tracing.k8s.io/traceparent"
TRACE_ID = TRACEPARENT[3:35]


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


def annotation(made: dict[str, Any]) -> str | None:
    """The traceparent in what was created, its own."""
    value = (made["metadata"].get("annotations") or {}).get(KEY)
    return None if value is None else str(value)


def configuration() -> dict[str, Any]:
    """The configuration as it is shipped."""
    found = yaml.safe_load((MANIFESTS / "configuration.yaml").read_text("utf-8"))
    assert isinstance(found, dict)
    return found
