"""`kubectl podtrail` with the real kubectl on a real API server; for want of a node a stand-in forwards the port."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from podtrail.testing.attempts import START, no_room
from tests.envtest.control_plane import DEADLINE, ControlPlane
from tests.extensions.held_page import held_page

BESIDE = Path(sys.executable).parent
STAND_IN = """\
#!/usr/bin/env python3
import os, sys, time
if "port-forward" not in sys.argv:
    os.execv({kubectl!r}, [{kubectl!r}, *sys.argv[1:]])
print(f"asked for {{sys.argv[-2]}} {{sys.argv[-1]}}", file=open({log!r}, "w"))
print("Forwarding from 127.0.0.1:{port} -> 15927", flush=True)
time.sleep(600)
"""
pytestmark = pytest.mark.control_plane
Plugin = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def page() -> Iterator[int]:
    """The port of a running page that holds a Pod that waits."""
    with held_page(no_room()) as address:
        yield int(address.rstrip("/").rpartition(":")[2])


@pytest.fixture
def plugin(control_plane: ControlPlane, page: int, tmp_path: Path) -> Plugin:
    """Runs `kubectl podtrail` as kubectl does."""
    tools = tmp_path / "bin"
    tools.mkdir()
    real = str(control_plane.assets / "kubectl")
    log = str(tmp_path / "asked")

    def run(*arguments: str, port: int = page, path: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        (tools / "kubectl").write_text(STAND_IN.format(kubectl=real, port=port, log=log))
        (tools / "kubectl").chmod(0o755)
        environ = {"PATH": path or f"{tools}:{BESIDE}:/usr/bin:/bin", "HOME": str(tmp_path)}
        environ |= {"KUBECONFIG": str(control_plane.kubeconfig), **more}
        return subprocess.run(
            [BESIDE / "kubectl-podtrail", *arguments],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    return run


def place(
    plane: ControlPlane, namespace: str, name: str, app: str, phase: str = "Running", container: str = "x"
) -> None:
    """Make a Pod with a label, in a phase."""
    spec = {"containers": [{"name": container, "image": "podtrail:0.1.0"}]}
    labels = {"app.kubernetes.io/name": app}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    plane.api.create(pods, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    plane.api.patch(f"{pods}/{name}/status", {"status": {"phase": phase}})


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    """One for this test alone."""
    return control_plane.api.namespace(request.node.name.removeprefix("test_").replace("_", "-")[:50].strip("-"))


def test_the_gateway_is_found_forwarded_and_asked(
    plugin: Plugin, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    place(control_plane, namespace, "gw", "podtrail-gateway")
    place(control_plane, namespace, "beside", "second-scheduler", container="podtrail")
    done = plugin("why", "web-0", "--podtrail-namespace", namespace)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("default/web-0 is Pending")
    assert (tmp_path / "asked").read_text() == "asked for pod/gw :15927\n"
    done = plugin("report", "incident", "--from", str(START // 10**9), "-n", namespace)
    assert done.stdout.startswith("# Incident ")
    done = plugin("why", "nobody", "--podtrail-namespace", namespace)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing is known of Pod nobody" in done.stderr


def test_a_sidecar_is_found_where_there_is_no_gateway(
    plugin: Plugin, control_plane: ControlPlane, namespace: str
) -> None:
    place(control_plane, namespace, "scheduler", "second-scheduler", container="podtrail")
    done = plugin("why", "web-0", "-n", "default", "--podtrail-namespace", namespace)
    assert done.returncode == 0, done.stderr


def test_several_are_told_with_what_to_type(plugin: Plugin, control_plane: ControlPlane, namespace: str) -> None:
    for name in ("gw-0", "gw-1"):
        place(control_plane, namespace, name, "podtrail-kafka-gateway")
    place(control_plane, namespace, "gw-2", "podtrail-kafka-gateway", phase="Pending")
    done = plugin("top", "--once", "-n", namespace)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "podtrail: 2 Pods have podtrail, each with a page of its own; say which:",
        f"  --pod {namespace}/gw-0",
        f"  --pod {namespace}/gw-1",
    ]
    assert plugin("why", "web-0", "--pod", f"{namespace}/gw-1").returncode == 0
    assert plugin("why", "web-0", "-l", "app.kubernetes.io/name=podtrail-kafka-gateway", "--pod", "").returncode == 2


def test_none_found_says_what_was_looked_for(plugin: Plugin, control_plane: ControlPlane, namespace: str) -> None:
    place(control_plane, namespace, "gw", "podtrail-gateway", phase="Pending")
    done = plugin("why", "pending", "--podtrail-namespace", namespace)
    assert done.returncode == 1
    assert f"no running Pod with podtrail found in namespace {namespace}, looked for labels: app.kub" in done.stderr
    assert f"There is {namespace}/gw (Pending)." in done.stderr


def test_a_pod_without_a_page_is_told(plugin: Plugin, control_plane: ControlPlane, namespace: str) -> None:
    place(control_plane, namespace, "gw", "podtrail-gateway")
    done = plugin("why", "pending", "--podtrail-namespace", namespace, port=1)
    assert done.returncode == 1
    assert f"{namespace}/gw has no page on port 15927: add the viewer extension" in done.stderr


def test_who_may_not_list_is_told_so(plugin: Plugin, control_plane: ControlPlane) -> None:
    done = plugin("why", "pending", KUBECONFIG=str(control_plane.user("mallory")))
    assert done.returncode == 1
    assert "forbidden" in done.stderr
    assert "--podtrail-namespace NAMESPACE" in done.stderr


def test_without_kubectl_that_is_said(plugin: Plugin) -> None:
    done = plugin("why", "pending", path="/nowhere")
    assert (done.returncode, done.stderr) == (
        1,
        "podtrail: there is no kubectl on the PATH: kubectl podtrail finds podtrail by it\n",
    )


def test_a_context_that_is_not_there_is_kubectls_to_tell(plugin: Plugin) -> None:
    done = plugin("why", "pending", "--context", "nowhere")
    assert done.returncode == 1
    assert "context was not found for specified context: nowhere\n" in done.stderr


def environ_of(tmp_path: Path) -> Mapping[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def test_completion_offers_commands_and_no_files(tmp_path: Path) -> None:
    done = subprocess.run(
        [BESIDE / "kubectl_complete-podtrail", "why", "p"],
        env=environ_of(tmp_path),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    *offered, directive = done.stdout.splitlines()
    assert {"pod", "pending"} <= {line.partition("\t")[0] for line in offered}
    assert directive == ":4"
