"""A workload that is applied again and again, as people and GitOps do it: what was written into it changes nothing."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.envtest.control_plane import ControlPlane
from tests.webhook.asking import annotation, await_webhook, deployment
from tests.webhook.conftest import Certified, RunningWebhook

pytestmark = pytest.mark.control_plane
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
BY = {"client": (), "server": ("--server-side",), "a manager of its own": ("--server-side", "--field-manager=gitops")}


@pytest.fixture
def namespace(
    traced: ControlPlane,
    run_webhook: Callable[..., RunningWebhook],
    certified: Certified,
    configure: Callable[..., str],
) -> str:
    """About which the API server asks the webhook."""
    name = configure(traced, run_webhook(*certified.arguments).url, certified.ca_bundle)
    await_webhook(traced.api, name)
    return name


@pytest.fixture
def run(traced: ControlPlane, kubectl: Path, namespace: str) -> Kubectl:
    """Runs kubectl."""

    def it(*arguments: object) -> "subprocess.CompletedProcess[str]":
        command = [str(kubectl), "--kubeconfig", str(traced.kubeconfig), "-n", namespace, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ, timeout=120)

    return it


def live(traced: ControlPlane, namespace: str) -> tuple[int, str | None]:
    """The generation, which counts the changes of its specification, and the annotation in its template."""
    found: Any = traced.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    return found["metadata"]["generation"], annotation(found["spec"]["template"])


def written(path: Path, **spec: Any) -> Path:
    made = deployment()
    made["spec"].update(spec)
    path.write_text(json.dumps(made))
    return path


@pytest.mark.parametrize("how", BY)
def test_applied_again_it_stays_as_it_is_and_shows_no_difference(
    how: str, traced: ControlPlane, namespace: str, run: Kubectl, tmp_path: Path
) -> None:
    x = written(tmp_path / "web.json")
    assert run("apply", *BY[how], "-f", x).returncode == 0
    made = live(traced, namespace)
    assert made[0] == 1
    assert made[1] is not None
    diff = run("diff", *BY[how], "-f", x)
    assert (diff.returncode, diff.stdout) == (0, "")
    run("apply", *BY[how], "-f", x)
    assert live(traced, namespace) == made
    run("apply", *BY[how], "-f", written(x, replicas=3))
    assert live(traced, namespace) == (2, made[1])


def test_replaced_it_loses_the_annotation_once(
    traced: ControlPlane, namespace: str, run: Kubectl, tmp_path: Path
) -> None:
    x = written(tmp_path / "web.json")
    run("create", "-f", x)
    assert live(traced, namespace)[1] is not None
    for _ in range(2):
        assert run("replace", "-f", x).returncode == 0
        assert live(traced, namespace) == (2, None)


def test_made_again_it_has_another_template(traced: ControlPlane, namespace: str, run: Kubectl, tmp_path: Path) -> None:
    x = written(tmp_path / "web.json")
    run("apply", "-f", x)
    first = live(traced, namespace)[1]
    run("delete", "--cascade=background", "-f", x)
    run("apply", "-f", x)
    assert live(traced, namespace)[1] not in (first, None)
